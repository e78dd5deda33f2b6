// SPDX-License-Identifier: GPL-2.0

//! Tests of the contexts in which a disk is dropped.

#[macros::kunit_tests(rust_block_gendisk)]
mod suite {
    use super::super::*;
    use crate::{
        block::{
            gendisk::{
                GenDiskBuilder,
                Parent, //
            },
            limits::QueueLimits,
            mq::{
                memalloc_noio,
                IdleRequest,
                NoTimer,
                NonBlocking,
                Op,
                QueueCounts,
                QueueResult,
                TagSetOptions, //
            },
            BlkStatus,
            Sectors, //
        },
        device::{
            Bound,
            Device, //
        },
        error::from_err_ptr,
        faux, new_spinlock, static_lock_class,
        sync::{
            atomic::{
                self,
                Relaxed, //
            },
            rcu,
            Completion,
            SpinLock, //
        },
        workqueue,
    };
    use core::ptr;

    /// Signals an event when dropped.
    struct DropSignal(Arc<Event>);

    #[pin_data]
    struct Event {
        happened: atomic::Atomic<bool>,
        #[pin]
        completion: Completion,
    }

    impl Event {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    happened: atomic::Atomic::new(false),
                    completion <- Completion::new(),
                }),
                GFP_KERNEL,
            )
        }
    }

    impl Drop for DropSignal {
        fn drop(&mut self) {
            self.0.happened.store(true, Relaxed);
            self.0.completion.complete_all();
        }
    }

    /// A driver whose callbacks call functions that would wait for the callbacks.
    struct Driver;

    #[pin_data]
    struct Queue {
        dropped: Option<DropSignal>,
        tags: Option<Arc<TagSet<Driver>>>,
        #[pin]
        another: SpinLock<Option<GenDisk<Driver>>>,
        refusals: atomic::Atomic<i32>,
    }

    impl Queue {
        fn new(
            dropped: Option<DropSignal>,
            tags: Option<Arc<TagSet<Driver>>>,
            another: Option<GenDisk<Driver>>,
        ) -> impl PinInit<Self, Error> {
            try_pin_init!(Self {
                dropped,
                tags,
                another <- new_spinlock!(another),
                refusals: atomic::Atomic::new(0),
            }? Error)
        }

        /// Calls everything that would wait for the calling callback.
        fn try_all(&self) {
            let Some(tags) = &self.tags else {
                return;
            };
            let change = tags.set_queue_counts(reads(3));
            let build = GenDiskBuilder::new(tags.clone(), static_lock_class!())
                .build(c"rust_test_never", Self::new(None, None, None));
            for error in [change.err(), build.err()] {
                if error == Some(EDEADLK) {
                    self.refusals.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// The data of a hardware queue. Dropping it calls such a function, too.
    struct Hw {
        tags: Option<Arc<TagSet<Driver>>>,
    }

    impl Drop for Hw {
        fn drop(&mut self) {
            if let Some(tags) = &self.tags {
                assert_eq!(tags.set_queue_counts(reads(3)), Err(EDEADLK));
            }
        }
    }

    #[vtable]
    impl Operations for Driver {
        type Context = NonBlocking;
        type TagSetData = Option<DropSignal>;
        type QueueData = Queue;
        type HwData = Hw;
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(queue: &Queue, _: &Option<DropSignal>, _: u32) -> impl PinInit<Hw, Error> {
            queue.try_all();
            Ok(Hw {
                tags: queue.tags.clone(),
            })
        }

        fn init_request(_: &Option<DropSignal>) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let queue = rq.queue_data();
            queue.try_all();
            let another = queue.another.lock().take();
            drop(another);
            rq.start().end(Ok(()));
            Ok(())
        }
    }

    fn reads(read: u32) -> QueueCounts {
        QueueCounts {
            read,
            ..QueueCounts::default()
        }
    }

    fn tags(dropped: Option<DropSignal>) -> Result<Arc<TagSet<Driver>>> {
        let options = TagSetOptions {
            queues: reads(1),
            ..TagSetOptions::default()
        };
        TagSet::new(options, Ok(dropped))
    }

    fn disk(
        name: &CStr,
        tags: Arc<TagSet<Driver>>,
        queue: impl PinInit<Queue, Error>,
    ) -> Result<GenDisk<Driver>> {
        GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(name, queue)?
            .add()
    }

    #[test]
    fn a_disk_dropped_in_atomic_context_is_removed_later() -> Result {
        let (dropped, tags_dropped) = (Event::new()?, Event::new()?);
        let tags = tags(Some(DropSignal(tags_dropped.clone())))?;
        let queue = Queue::new(Some(DropSignal(dropped.clone())), None, None);
        let disk = disk(c"rust_test_late", tags, queue)?;
        {
            let _section = rcu::read_lock();
            drop(disk);
            assert!(!dropped.happened.load(Relaxed));
        }
        dropped.completion.wait_for_completion();
        tags_dropped.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn calls_that_would_deadlock_fail_or_are_deferred() -> Result {
        let dropped = Event::new()?;
        let another = disk(
            c"rust_test_another",
            tags(None)?,
            Queue::new(Some(DropSignal(dropped.clone())), None, None),
        )?;
        let tags = tags(None)?;
        let queue = Queue::new(None, Some(tags.clone()), Some(another));
        // The block layer scans for partitions.
        let disk = disk(c"rust_test_dead", tags.clone(), queue)?;
        dropped.completion.wait_for_completion();
        // Two in `init_hw_queue` for each hardware queue, at least two in `queue_rq`.
        assert!(disk.queue_data().refusals.load(Relaxed) >= 6);
        // Data that is dropped here must not begin another update.
        tags.set_queue_counts(reads(2))?;
        tags.set_queue_counts(reads(1))?;
        drop(disk);
        Ok(())
    }

    /// Opens a disk, to be closed by `bdev_fput`. Also returns its block device.
    fn open<T: Operations>(disk: &GenDisk<T>) -> Result<(*mut c_void, *mut c_void)> {
        // SAFETY: The disk was added, so `part0`, the block device of the whole disk, exists.
        let part = unsafe { (*disk.disk.disk.as_ptr()).part0 };
        // SAFETY: As above.
        let number = unsafe { (*part).bd_dev };
        // Read-only: C's `BLK_OPEN_READ`.
        //
        // SAFETY: There is no holder, hence there are no holder operations.
        let file = from_err_ptr(unsafe {
            bindings::bdev_file_open_by_dev(number, 1, ptr::null_mut(), ptr::null())
        })?;
        Ok((file.cast(), part.cast()))
    }

    /// A driver that stops its queues on a flush and never restarts them.
    struct Stopper;

    #[vtable]
    impl Operations for Stopper {
        type Context = NonBlocking;
        type TagSetData = ();
        /// Signalled when the queues are stopped.
        type QueueData = DropSignal;
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &DropSignal, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let stopped = &rq.queue_data().0;
            if rq.op() == Op::Flush && !stopped.happened.xchg(true, Relaxed) {
                rq.hw_queue().request_queue().stop();
                stopped.completion.complete_all();
                return Err(rq.reject(BlkStatus::RESOURCE));
            }
            rq.start().end(Ok(()));
            Ok(())
        }
    }

    #[test]
    fn a_disk_with_stopped_queues_is_removed() -> Result {
        let (stopped, flushed) = (Event::new()?, Event::new()?);
        let limits = QueueLimits {
            write_cache: true,
            ..QueueLimits::default()
        };
        let tags = TagSet::<Stopper>::new(TagSetOptions::default(), Ok(()))?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .limits(limits)
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_test_stopped", Ok(DropSignal(stopped.clone())))?
            .add()?;
        let (file, part) = open(&disk)?;
        let (part, done) = (part.expose_provenance(), DropSignal(flushed.clone()));
        workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            let part = ptr::with_exposed_provenance_mut(part);
            // SAFETY: The test keeps the device open until the flush has completed.
            unsafe { bindings::blkdev_issue_flush(part) };
            drop(done);
        })?;
        stopped.completion.wait_for_completion();
        drop(disk);
        flushed.completion.wait_for_completion();
        // SAFETY: The test owns the file, and does not use it again.
        unsafe { bindings::bdev_fput(file.cast()) };
        Ok(())
    }

    #[test]
    fn an_opener_keeps_the_tag_set() -> Result {
        let dropped = Event::new()?;
        let tags = tags(Some(DropSignal(dropped.clone())))?;
        let disk = disk(c"rust_test_open", tags, Queue::new(None, None, None))?;
        let (file, _) = open(&disk)?;
        drop(disk);
        assert!(!dropped.happened.load(Relaxed));
        // SAFETY: The test owns the file, and does not use it again.
        unsafe { bindings::bdev_fput(file.cast()) };
        dropped.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn the_capacity_changes_until_the_disk_is_dead() -> Result {
        let disk = disk(
            c"rust_test_capacity",
            tags(None)?,
            Queue::new(None, None, None),
        )?;
        let (small, large) = (Sectors::from_mebibytes(1), Sectors::from_mebibytes(2));
        assert_eq!(disk.capacity(), small);
        disk.set_capacity(large)?;
        assert_eq!(disk.capacity(), large);
        let too_large = Sectors(MAX_CAPACITY.0 + 1);
        assert_eq!(disk.set_capacity(too_large), Err(EINVAL));
        // As in a callback.
        let in_callback = memalloc_noio(|| (disk.set_capacity(small), disk.mark_dead()));
        assert_eq!(in_callback, (Err(EDEADLK), Err(EDEADLK)));
        assert_eq!(disk.capacity(), large);

        disk.mark_dead()?;
        assert_eq!(disk.capacity(), Sectors::ZERO);
        assert_eq!(disk.set_capacity(large), Err(ENODEV));
        assert_eq!(disk.capacity(), Sectors::ZERO);
        disk.mark_dead()
    }

    /// A driver that requeues a flush for an hour.
    struct Postponer;

    #[vtable]
    impl Operations for Postponer {
        type Context = NonBlocking;
        type TagSetData = ();
        /// Signalled when the request is requeued.
        type QueueData = DropSignal;
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &DropSignal, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let requeued = rq.queue_data().0.clone();
            let rq = rq.start();
            if rq.op() == Op::Flush && !requeued.happened.xchg(true, Relaxed) {
                rq.requeue_after(Delta::from_secs(3600));
                requeued.completion.complete_all();
            } else {
                rq.end(Ok(()));
            }
            Ok(())
        }
    }

    #[test]
    fn a_disk_is_removed_before_the_delay_of_its_requests_is_over() -> Result {
        let (requeued, flushed) = (Event::new()?, Event::new()?);
        let limits = QueueLimits {
            write_cache: true,
            ..QueueLimits::default()
        };
        let tags = TagSet::<Postponer>::new(TagSetOptions::default(), Ok(()))?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .limits(limits)
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_test_postponed", Ok(DropSignal(requeued.clone())))?
            .add()?;
        let (file, part) = open(&disk)?;
        let (part, done) = (part.expose_provenance(), DropSignal(flushed.clone()));
        workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            let part = ptr::with_exposed_provenance_mut(part);
            // SAFETY: The test keeps the device open until the flush has completed.
            unsafe { bindings::blkdev_issue_flush(part) };
            drop(done);
        })?;
        requeued.completion.wait_for_completion();
        drop(disk);
        flushed.completion.wait_for_completion();
        // SAFETY: The test owns the file, and does not use it again.
        unsafe { bindings::bdev_fput(file.cast()) };
        Ok(())
    }

    #[test]
    fn a_disk_is_below_its_parent_while_that_is_in_the_system() -> Result {
        let build = |parent: &faux::Device<Bound>, name| {
            GenDiskBuilder::new(tags(None)?, static_lock_class!())
                .parent(Parent::new(parent.as_ref())?)
                .build(name, Queue::new(None, None, None))
        };
        let parent = faux::Registration::new(c"rust_test_parent", None)?;
        let device: &Device<Bound> = parent.as_ref().as_ref();
        let raw = ptr::from_ref(device).cast::<bindings::device>();
        let disk = build(parent.as_ref(), c"rust_test_child")?.add()?;
        // SAFETY: The disk was added.
        let part = unsafe { (*disk.disk.disk.as_ptr()).part0 };
        // SAFETY: As above, so there is a block device.
        assert!(ptr::eq(unsafe { (*part).bd_device.parent }, raw));
        drop(disk);

        // A parent that is gone.
        let late = build(parent.as_ref(), c"rust_test_orphan")?;
        drop(parent);
        assert!(late.add().is_err());
        Ok(())
    }
}
