// SPDX-License-Identifier: GPL-2.0

//! Tests of bios on disks that get bios.

#[macros::kunit_tests(rust_block_bio_based)]
pub(super) mod suite {
    use super::super::*;
    use crate::{
        alloc::flags::__GFP_ZERO,
        bindings,
        block::{
            bio::Transfer,
            gendisk::{
                Bios,
                GenDisk,
                GenDiskBuilder, //
            },
            limits::QueueLimits,
            BlkStatus,
            Sectors, //
        },
        error::{
            from_err_ptr,
            to_result, //
        },
        new_spinlock,
        page::PAGE_SIZE,
        prelude::*,
        static_lock_class,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Completion,
            SpinLock, //
        },
        time::Delta,
    };
    use core::ptr;

    /// What the driver does with a bio.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(in super::super) enum Action {
        End,
        Drop,
        Keep,
        Delay,
        DelayError,
        WouldBlock,
        Deadlock,
    }

    pub(in super::super) struct Driver;

    #[pin_data]
    pub(in super::super) struct Queue {
        #[pin]
        action: SpinLock<Action>,
        /// The steps of the last bio: flush, transfer, transfer with FUA.
        #[pin]
        pub(in super::super) steps: SpinLock<KVec<u8>>,
        pub(in super::super) count: Atomic<i32>,
        pub(in super::super) longest: Atomic<i32>,
        refused: Atomic<bool>,
        #[pin]
        pub(in super::super) kept: SpinLock<Option<OwnedBio<Driver>>>,
        #[pin]
        pub(in super::super) arrived: Completion,
        #[pin]
        another: SpinLock<Option<GenDisk<Driver, Bios>>>,
        delayed: DelayQueue<Driver>,
        ended: Option<Ended>,
    }

    impl Queue {
        fn new(
            ended: Option<Ended>,
            another: Option<GenDisk<Driver, Bios>>,
        ) -> impl PinInit<Self, Error> {
            try_pin_init!(Self {
                action <- new_spinlock!(Action::End),
                steps <- new_spinlock!(KVec::new()),
                count: Atomic::new(0),
                longest: Atomic::new(0),
                refused: Atomic::new(false),
                kept <- new_spinlock!(None),
                arrived <- Completion::new(),
                another <- new_spinlock!(another),
                delayed: DelayQueue::new(Delta::from_micros(100))?,
                ended,
            }? Error)
        }

        fn note(&self, bio: &Bio<Driver>) {
            let mut steps = KVec::new();
            for step in bio.steps() {
                let code = match step {
                    Step::Flush => b'f',
                    Step::Transfer if bio.is_fua() => b'T',
                    Step::Transfer => b't',
                };
                let _ = steps.push(code, GFP_NOWAIT);
            }
            *self.steps.lock() = steps;
            self.count.fetch_add(1, Relaxed);
            let sectors = bio.sectors().0 as i32;
            if sectors > self.longest.load(Relaxed) {
                self.longest.store(sectors, Relaxed);
            }
        }
    }

    /// Signals when it is dropped.
    pub(in super::super) struct Ended(pub(in super::super) crate::sync::Arc<Event>);

    #[pin_data]
    pub(in super::super) struct Event {
        #[pin]
        pub(in super::super) completion: Completion,
        pub(in super::super) happened: Atomic<bool>,
    }

    impl Event {
        pub(in super::super) fn new() -> Result<crate::sync::Arc<Self>> {
            crate::sync::Arc::pin_init(
                pin_init!(Self {
                    completion <- Completion::new(),
                    happened: Atomic::new(false),
                }),
                GFP_KERNEL,
            )
        }
    }

    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.happened.store(true, Relaxed);
            self.0.completion.complete_all();
        }
    }

    #[vtable]
    impl Operations for Driver {
        type QueueData = Queue;

        fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
            let queue = bio.queue_data();
            queue.note(&bio);
            let action = *queue.action.lock();
            match action {
                Action::End => {
                    if let Transfer::FromDisk(mut memory) = bio.transfer() {
                        memory.fill(0x5a);
                    }
                    bio.end(Ok(()));
                }
                Action::Drop => drop(bio),
                Action::Keep => {
                    let before = queue.kept.lock().replace(bio.keep());
                    drop(before);
                    queue.arrived.complete_all();
                }
                Action::Delay => drop(queue.delayed.end_later(bio.keep(), Ok(()), GFP_KERNEL)),
                Action::DelayError => {
                    let result = Err(BlkStatus::NOSPC);
                    drop(queue.delayed.end_later(bio.keep(), result, GFP_KERNEL));
                }
                Action::WouldBlock => {
                    let refuse = bio.is_nowait() && bio.gfp() == GFP_NOWAIT;
                    bio.end(if refuse {
                        Err(BlkStatus::AGAIN)
                    } else {
                        Ok(())
                    });
                }
                Action::Deadlock => {
                    let built = disk(c"rust_test_never", QueueLimits::default(), None, None);
                    let another = queue.another.lock().take();
                    drop(another);
                    queue.refused.store(built.err() == Some(EDEADLK), Relaxed);
                    bio.end(Ok(()));
                }
            }
        }
    }

    pub(in super::super) fn disk(
        name: &CStr,
        limits: QueueLimits,
        ended: Option<Ended>,
        another: Option<GenDisk<Driver, Bios>>,
    ) -> Result<GenDisk<Driver, Bios>> {
        GenDiskBuilder::bio_based(static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .limits(limits)
            .build(name, Queue::new(ended, another))?
            .add()
    }

    /// A disk that is open.
    pub(in super::super) struct Open {
        file: *mut c_void,
        part: *mut bindings::block_device,
    }

    impl Open {
        pub(in super::super) fn new(part: *mut bindings::block_device) -> Result<Self> {
            // SAFETY: The disk was added, so it has a block device.
            let number = unsafe { (*part).bd_dev };
            // To read and write: C's `BLK_OPEN_READ` and `BLK_OPEN_WRITE`.
            //
            // SAFETY: There is no holder, hence there are no holder operations.
            let file = from_err_ptr(unsafe {
                bindings::bdev_file_open_by_dev(number, 3, ptr::null_mut(), ptr::null())
            })?;
            Ok(Self {
                file: file.cast(),
                part,
            })
        }

        /// Submits a bio with so many pages, and waits for it. Returns the first byte.
        pub(in super::super) fn submit(&self, flags: u32, pages: usize) -> Result<u8> {
            let mut vecs = KVec::new();
            // SAFETY: All zeros are a valid `struct bio_vec`.
            vecs.resize(pages.max(1), unsafe { core::mem::zeroed() }, GFP_KERNEL)?;
            // SAFETY: All zeros are a valid `struct bio`.
            let mut bio = KBox::new(unsafe { core::mem::zeroed() }, GFP_KERNEL)?;
            let bio: *mut bindings::bio = &mut *bio;
            let table = vecs.as_mut_ptr();
            // SAFETY: The table has as many elements, and outlives the bio.
            unsafe { bindings::bio_init(bio, self.part, table, pages as u16, flags) };
            let mut memory = KVec::new();
            for _ in 0..pages {
                memory.push(
                    crate::page::Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?,
                    GFP_KERNEL,
                )?;
            }
            for page in &memory {
                // SAFETY: The page is allocated until the bio has ended.
                let added =
                    unsafe { bindings::bio_add_page(bio, page.as_ptr(), PAGE_SIZE as u32, 0) };
                assert_eq!(added as usize, PAGE_SIZE);
            }
            // SAFETY: The bio is valid, and is not used after it has ended.
            let result = to_result(unsafe { bindings::submit_bio_wait(bio) });
            // SAFETY: As above.
            unsafe { bindings::bio_uninit(bio) };
            result?;
            let mut first = [0];
            if let Some(page) = memory.first() {
                // SAFETY: Nothing writes to the page.
                unsafe { page.read_raw(first.as_mut_ptr(), 0, 1)? };
            }
            Ok(first[0])
        }
    }

    impl Drop for Open {
        fn drop(&mut self) {
            // SAFETY: `self` owns the file, which is not used after this.
            unsafe { bindings::bdev_fput(self.file.cast()) };
        }
    }

    pub(in super::super) const READ: u32 = bindings::req_op_REQ_OP_READ;
    pub(in super::super) const WRITE: u32 = bindings::req_op_REQ_OP_WRITE;
    pub(in super::super) const PREFLUSH: u32 = 1 << bindings::req_flag_bits___REQ_PREFLUSH;
    pub(in super::super) const FUA: u32 = 1 << bindings::req_flag_bits___REQ_FUA;
    const NOWAIT: u32 = 1 << bindings::req_flag_bits___REQ_NOWAIT;

    pub(in super::super) fn set(disk: &GenDisk<Driver, Bios>, action: Action) {
        *disk.queue_data().action.lock() = action;
    }

    #[test]
    fn bios_end_with_the_status_of_the_driver() -> Result {
        let disk = disk(c"rust_test_bios", QueueLimits::default(), None, None)?;
        let open = Open::new(disk.part0())?;
        assert_eq!(open.submit(READ, 1), Ok(0x5a));
        for (action, result) in [
            (Action::Drop, Err(EIO)),
            (Action::Delay, Ok(0)),
            (Action::DelayError, Err(ENOSPC)),
        ] {
            set(&disk, action);
            assert_eq!(open.submit(WRITE, 1).map(|_| 0), result);
        }
        set(&disk, Action::End);
        Ok(())
    }

    #[test]
    fn a_long_bio_is_split() -> Result {
        let page = Sectors::from_bytes(PAGE_SIZE as u64);
        let limits = QueueLimits {
            max_hw_sectors: page,
            ..QueueLimits::default()
        };
        let disk = disk(c"rust_test_split", limits, None, None)?;
        let (open, queue) = (Open::new(disk.part0())?, disk.queue_data());
        queue.count.store(0, Relaxed);
        assert_eq!(open.submit(READ, 5), Ok(0x5a));
        assert_eq!(queue.count.load(Relaxed), 5);
        assert_eq!(queue.longest.load(Relaxed), page.0 as i32);
        // An error of a part is that of the whole.
        set(&disk, Action::DelayError);
        assert_eq!(open.submit(WRITE, 5), Err(ENOSPC));
        // A bio that must not wait is not split.
        set(&disk, Action::End);
        assert_eq!(open.submit(READ | NOWAIT, 5), Err(EAGAIN));
        Ok(())
    }

    #[test]
    fn flushes_and_data_are_in_order() -> Result {
        let cached = |fua| QueueLimits {
            write_cache: true,
            fua,
            ..QueueLimits::default()
        };
        for (limits, flags, pages, steps) in [
            (cached(false), PREFLUSH, 0, "f"),
            (cached(false), PREFLUSH | FUA, 1, "ftf"),
            (cached(false), FUA, 1, "tf"),
            (cached(true), PREFLUSH | FUA, 1, "fT"),
            (cached(true), PREFLUSH, 1, "ft"),
            (QueueLimits::default(), PREFLUSH | FUA, 1, "t"),
        ] {
            let disk = disk(c"rust_test_flush", limits, None, None)?;
            Open::new(disk.part0())?.submit(WRITE | flags, pages)?;
            assert_eq!(disk.queue_data().steps.lock()[..], *steps.as_bytes());
        }
        Ok(())
    }

    #[test]
    fn a_bio_that_must_not_wait_is_told() -> Result {
        let disk = disk(c"rust_test_nowait", QueueLimits::default(), None, None)?;
        let open = Open::new(disk.part0())?;
        set(&disk, Action::WouldBlock);
        assert_eq!(open.submit(READ | NOWAIT, 1), Err(EAGAIN));
        assert!(open.submit(READ, 1).is_ok());
        Ok(())
    }

    #[test]
    fn what_would_deadlock_fails_or_is_deferred() -> Result {
        let event = Event::new()?;
        let none = QueueLimits::default();
        let another = disk(c"rust_test_other", none, Some(Ended(event.clone())), None)?;
        let disk = disk(c"rust_test_dead", none, None, Some(another))?;
        set(&disk, Action::Deadlock);
        Open::new(disk.part0())?.submit(READ, 1)?;
        assert!(disk.queue_data().refused.load(Relaxed));
        event.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn removal_waits_for_a_kept_bio() -> Result {
        let event = Event::new()?;
        let disk = disk(
            c"rust_test_kept",
            QueueLimits::default(),
            Some(Ended(event.clone())),
            None,
        )?;
        let open = Open::new(disk.part0())?;
        set(&disk, Action::Keep);
        let result = Event::new()?;
        let done = Ended(result.clone());
        let user = SendOpen(open);
        crate::workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            let user = user;
            let submitted = user.0.submit(READ, 1);
            drop(user);
            assert!(submitted.is_ok());
            drop(done);
        })?;
        let queue = disk.queue_data();
        queue.arrived.wait_for_completion();
        let bio = queue.kept.lock().take();
        set(&disk, Action::End);
        let removed = Event::new()?;
        let signal = Ended(removed.clone());
        crate::workqueue::system().try_spawn(GFP_KERNEL, move || {
            drop(disk);
            drop(signal);
        })?;
        crate::time::delay::fsleep(Delta::from_millis(50));
        assert!(!event.happened.load(Relaxed) && !removed.happened.load(Relaxed));
        let bio = bio.ok_or(EIO)?;
        bio.end(Ok(()));
        removed.completion.wait_for_completion();
        assert!(event.happened.load(Relaxed));
        result.completion.wait_for_completion();
        Ok(())
    }

    /// An open disk that is passed to a work item.
    pub(in super::super) struct SendOpen(pub(in super::super) Open);

    // SAFETY: A file and a block device are not bound to a task.
    unsafe impl Send for SendOpen {}

    #[test]
    fn a_disk_with_bios_has_no_zones() {
        let zoned = QueueLimits {
            zoned: true,
            chunk_sectors: Sectors(64),
            ..QueueLimits::default()
        };
        let built = disk(c"rust_test_zoned", zoned, None, None);
        assert_eq!(built.err(), Some(EINVAL));
    }
}
