// SPDX-License-Identifier: GPL-2.0

//! Tests of where a disk, with what belongs to it, is dropped.

#[macros::kunit_tests(rust_block_gendisk)]
mod suite {
    use super::super::*;
    use crate::{
        block::{
            gendisk::GenDiskBuilder,
            limits::QueueLimits,
            mq::{
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
        error::from_err_ptr,
        new_spinlock, static_lock_class,
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

    /// Completed when what has it is dropped.
    struct Gone(Arc<Event>);

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

    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.happened.store(true, Relaxed);
            self.0.completion.complete_all();
        }
    }

    /// A driver that does in its callbacks what would wait for them.
    struct Driver;

    #[pin_data]
    struct Queue {
        gone: Option<Gone>,
        tags: Option<Arc<TagSet<Driver>>>,
        #[pin]
        another: SpinLock<Option<GenDisk<Driver>>>,
        refusals: atomic::Atomic<i32>,
    }

    impl Queue {
        fn new(
            gone: Option<Gone>,
            tags: Option<Arc<TagSet<Driver>>>,
            another: Option<GenDisk<Driver>>,
        ) -> impl PinInit<Self, Error> {
            try_pin_init!(Self {
                gone,
                tags,
                another <- new_spinlock!(another),
                refusals: atomic::Atomic::new(0),
            }? Error)
        }

        /// Does all that would wait for the caller, which is a callback.
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

    /// The data of a hardware queue, whose drop does the same.
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
        type TagSetData = Option<Gone>;
        type QueueData = Queue;
        type HwData = Hw;
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(queue: &Queue, _: &Option<Gone>, _: u32) -> impl PinInit<Hw, Error> {
            queue.try_all();
            Ok(Hw {
                tags: queue.tags.clone(),
            })
        }

        fn init_request(_: &Option<Gone>) -> impl PinInit<()> {}

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

    fn tags(gone: Option<Gone>) -> Result<Arc<TagSet<Driver>>> {
        let options = TagSetOptions {
            queues: reads(1),
            ..TagSetOptions::default()
        };
        TagSet::new(options, Ok(gone))
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
    fn a_disk_dropped_where_waiting_is_impossible_goes_later() -> Result {
        let (gone, tags_gone) = (Event::new()?, Event::new()?);
        let tags = tags(Some(Gone(tags_gone.clone())))?;
        let queue = Queue::new(Some(Gone(gone.clone())), None, None);
        let disk = disk(c"rust_test_late", tags, queue)?;
        {
            let _section = rcu::read_lock();
            drop(disk);
            assert!(!gone.happened.load(Relaxed));
        }
        gone.completion.wait_for_completion();
        tags_gone.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn what_would_wait_for_its_callback_fails_or_happens_later() -> Result {
        let gone = Event::new()?;
        let another = disk(
            c"rust_test_another",
            tags(None)?,
            Queue::new(Some(Gone(gone.clone())), None, None),
        )?;
        let tags = tags(None)?;
        let queue = Queue::new(None, Some(tags.clone()), Some(another));
        // The block layer looks for partitions.
        let disk = disk(c"rust_test_dead", tags.clone(), queue)?;
        gone.completion.wait_for_completion();
        // Two in `init_hw_queue` for each hardware queue, at least two in `queue_rq`.
        assert!(disk.queue_data().refusals.load(Relaxed) >= 6);
        // What is dropped here must not begin another change.
        tags.set_queue_counts(reads(2))?;
        tags.set_queue_counts(reads(1))?;
        drop(disk);
        Ok(())
    }

    /// Opens a disk, to be closed by `bdev_fput`; also returns its block device.
    fn open<T: Operations>(disk: &GenDisk<T>) -> Result<(*mut c_void, *mut c_void)> {
        // SAFETY: The disk was added, so C has its first partition, which is the whole.
        let part = unsafe { (*disk.disk.disk.as_ptr()).part0 };
        // SAFETY: As above.
        let number = unsafe { (*part).bd_dev };
        // To be read only: C's `BLK_OPEN_READ`.
        //
        // SAFETY: No holder is given, so there are no operations of it either.
        let file = from_err_ptr(unsafe {
            bindings::bdev_file_open_by_dev(number, 1, ptr::null_mut(), ptr::null())
        })?;
        Ok((file.cast(), part.cast()))
    }

    /// A driver that stops its queues for good when it is to flush.
    struct Stopper;

    #[vtable]
    impl Operations for Stopper {
        type Context = NonBlocking;
        type TagSetData = ();
        /// What happens when it does.
        type QueueData = Gone;
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &Gone, _: &(), _: u32) -> impl PinInit<(), Error> {
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
    fn a_disk_goes_whose_queues_are_stopped() -> Result {
        let (stopped, flushed) = (Event::new()?, Event::new()?);
        let limits = QueueLimits {
            write_cache: true,
            ..QueueLimits::default()
        };
        let tags = TagSet::<Stopper>::new(TagSetOptions::default(), Ok(()))?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .limits(limits)
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_test_stopped", Ok(Gone(stopped.clone())))?
            .add()?;
        let (file, part) = open(&disk)?;
        let (part, done) = (part.expose_provenance(), Gone(flushed.clone()));
        workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            let part = ptr::with_exposed_provenance_mut(part);
            // SAFETY: The test has the device open until this is done.
            unsafe { bindings::blkdev_issue_flush(part) };
            drop(done);
        })?;
        stopped.completion.wait_for_completion();
        drop(disk);
        flushed.completion.wait_for_completion();
        // SAFETY: The file is ours, and not used again.
        unsafe { bindings::bdev_fput(file.cast()) };
        Ok(())
    }

    #[test]
    fn an_opener_keeps_the_tag_set() -> Result {
        let gone = Event::new()?;
        let tags = tags(Some(Gone(gone.clone())))?;
        let disk = disk(c"rust_test_open", tags, Queue::new(None, None, None))?;
        let (file, _) = open(&disk)?;
        drop(disk);
        assert!(!gone.happened.load(Relaxed));
        // SAFETY: The file is ours, and not used again.
        unsafe { bindings::bdev_fput(file.cast()) };
        gone.completion.wait_for_completion();
        Ok(())
    }
}
