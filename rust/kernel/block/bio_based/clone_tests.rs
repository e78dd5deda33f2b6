// SPDX-License-Identifier: GPL-2.0

//! Tests of the clones of bios.

#[macros::kunit_tests(rust_block_bio_clones)]
mod suite {
    use super::super::{
        tests::suite::{
            self as lower,
            set,
            Action,
            Ended,
            Event,
            Open,
            FUA,
            PREFLUSH,
            READ,
            WRITE, //
        },
        *,
    };
    use crate::{
        bindings,
        block::{
            bdev::{
                Access,
                BdevFile, //
            },
            gendisk::{
                Bios,
                GenDisk,
                GenDiskBuilder, //
            },
            limits::QueueLimits,
            BlkResult,
            BlkStatus,
            Sector,
            Sectors, //
        },
        new_mutex, new_spinlock,
        page::PAGE_SIZE,
        prelude::*,
        static_lock_class,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Mutex,
            SetOnce,
            SpinLockIrq, //
        },
        time::Delta,
    };

    type Lower = GenDisk<lower::Driver, Bios>;

    const PAGE: Sectors = Sectors::from_bytes(PAGE_SIZE as u64);

    /// What the driver does with a bio.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Plan {
        /// Submits one clone.
        Whole,
        /// Submits a clone of each page.
        Pages,
        /// Submits a clone under a spinlock.
        Locked,
        /// Submits a clone of a part that begins with this sector of the bio, and goes to this
        /// sector of the other disk.
        Part(u64, u64),
        /// Submits no clone.
        Nothing,
        /// Submits one clone, and forgets to end.
        Drop,
        /// Submits one clone, and keeps the bio when that has ended.
        Keep,
        /// Submits one clone, and tries to submit another when that has ended.
        Again,
        /// Submits one clone, and drops the disk when that has ended.
        Remove,
        /// Submits a clone that only flushes.
        Flush,
        /// Submits a part that ends before it begins.
        Backwards,
    }

    struct Upper;

    #[pin_data]
    struct Queue {
        #[pin]
        plan: SpinLockIrq<Plan>,
        #[pin]
        other: Mutex<Option<BdevFile>>,
        /// The number of calls of `clones_ended`.
        calls: Atomic<i32>,
        /// The error number of the last clone that was refused.
        refused: Atomic<i32>,
        #[pin]
        kept: SpinLockIrq<Option<OwnedBio<Upper>>>,
        /// A disk that `clones_ended` drops.
        #[pin]
        condemned: SpinLockIrq<Option<GenDisk<Upper, Bios>>>,
        /// A device that `clones_ended` cannot submit to.
        again: SetOnce<BdevFile>,
        ended: Option<Ended>,
    }

    impl Queue {
        fn new(other: Option<BdevFile>, ended: Option<Ended>) -> impl PinInit<Self, Error> {
            try_pin_init!(Self {
                plan <- SpinLockIrq::new(Plan::Whole, c"plan", static_lock_class!()),
                other <- new_mutex!(other),
                calls: Atomic::new(0),
                refused: Atomic::new(0),
                kept <- SpinLockIrq::new(None, c"kept", static_lock_class!()),
                condemned <- SpinLockIrq::new(None, c"condemned", static_lock_class!()),
                again: SetOnce::new(),
                ended,
            }? Error)
        }

        /// Submits the clones.
        fn submit(&self, clones: &mut Clones<Upper>) -> Result {
            let other = self.other.lock();
            let other = other.as_ref().ok_or(ENODEV)?;
            let (plan, at, end) = (*self.plan.lock(), clones.sector(), clones.sectors());
            match plan {
                Plan::Whole | Plan::Drop | Plan::Keep | Plan::Again | Plan::Remove => {
                    clones.submit(Sectors::ZERO..end, other, at)
                }
                Plan::Pages => (0..end.0).step_by(PAGE.0 as usize).try_for_each(|start| {
                    let part = Sectors(start)..Sectors((start + PAGE.0).min(end.0));
                    clones.submit(part, other, at + Sectors(start))
                }),
                Plan::Locked => {
                    let guard = self.kept.lock();
                    let result = clones.submit(Sectors::ZERO..end, other, at);
                    drop(guard);
                    result
                }
                Plan::Part(from, to) => clones.submit(Sectors(from)..end, other, Sector(to)),
                Plan::Flush => clones.submit(Sectors::ZERO..Sectors::ZERO, other, at),
                Plan::Backwards => clones.submit(Sectors(8)..Sectors::ZERO, other, at),
                Plan::Nothing => Ok(()),
            }
        }
    }

    #[vtable]
    impl Operations for Upper {
        type QueueData = Queue;
        const RESERVED_CLONES: u32 = 2;

        fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
            let queue = bio.queue_data();
            let mut clones = bio.keep().into_clones();
            let result = queue.submit(&mut clones);
            if let Err(error) = result {
                queue.refused.store(error.to_errno(), Relaxed);
            }
            if *queue.plan.lock() == Plan::Drop {
                drop(clones);
            } else {
                clones.end(result.map_err(BlkStatus::from));
            }
        }

        fn clones_ended(bio: OwnedBio<Self>, result: BlkResult) {
            let queue = bio.queue_data();
            queue.calls.fetch_add(1, Relaxed);
            let plan = *queue.plan.lock();
            match plan {
                Plan::Keep => {}
                Plan::Again => {
                    let mut clones = bio.into_clones();
                    let submitted = submit_again(&mut clones);
                    return clones.end(submitted.map_err(BlkStatus::from));
                }
                Plan::Remove => {
                    // This cannot wait for the bio.
                    let disk = queue.condemned.lock().take();
                    drop(disk);
                    return bio.end(result);
                }
                _ => return bio.end(result),
            }
            let ended = queue.ended.as_ref().map(|ended| ended.0.clone());
            keep(bio);
            if let Some(ended) = ended {
                ended.completion.complete_all();
            }
        }
    }

    /// Submits another clone, which fails.
    fn submit_again(clones: &mut Clones<Upper>) -> Result {
        let (end, at) = (clones.sectors(), clones.sector());
        let queue: *const Queue = clones.queue_data();
        // SAFETY: The data is not dropped before the bio has ended.
        let queue = unsafe { &*queue };
        let other = queue.again.as_ref().ok_or(ENODEV)?;
        let result = clones.submit(Sectors::ZERO..end, other, at);
        if let Err(error) = result {
            queue.refused.store(error.to_errno(), Relaxed);
        }
        result
    }

    /// Puts a bio where the test finds it.
    fn keep(bio: OwnedBio<Upper>) {
        let queue: *const Queue = bio.queue_data();
        // SAFETY: The data is not dropped before the bio has ended.
        let before = unsafe { &*queue }.kept.lock().replace(bio);
        assert!(before.is_none());
    }

    fn open(disk: &Lower, access: Access) -> Result<BdevFile> {
        // SAFETY: The disk was added, so it has a block device.
        let dev = unsafe { (*disk.part0()).bd_dev };
        BdevFile::open_by_dev(
            dev >> bindings::MINORBITS,
            dev & ((1 << bindings::MINORBITS) - 1),
            access,
        )
    }

    fn lower(name: &CStr, limits: QueueLimits) -> Result<Lower> {
        lower::disk(name, limits, None, None)
    }

    fn upper(
        name: &CStr,
        other: Option<BdevFile>,
        ended: Option<Ended>,
    ) -> Result<GenDisk<Upper, Bios>> {
        let limits = QueueLimits {
            write_cache: true,
            fua: true,
            ..QueueLimits::default()
        };
        GenDiskBuilder::bio_based(static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .limits(limits)
            .build(name, Queue::new(other, ended))?
            .add()
    }

    fn plan(disk: &GenDisk<Upper, Bios>, plan: Plan) {
        let queue = disk.queue_data();
        *queue.plan.lock() = plan;
        queue.calls.store(0, Relaxed);
        queue.refused.store(0, Relaxed);
    }

    #[test]
    fn clones_reach_the_other_disk() -> Result {
        let limits = QueueLimits {
            write_cache: true,
            fua: true,
            ..QueueLimits::default()
        };
        let below = lower(c"rust_test_below", limits)?;
        let above = upper(
            c"rust_test_above",
            Some(open(&below, Access::ReadWrite)?),
            None,
        )?;
        let (user, queue) = (Open::new(above.part0())?, below.queue_data());
        for (way, pages, count, longest) in [
            (Plan::Whole, 4, 1, 4 * PAGE.0),
            (Plan::Pages, 4, 4, PAGE.0),
            (Plan::Pages, 1, 1, PAGE.0),
            (Plan::Part(PAGE.0, 0), 4, 1, 3 * PAGE.0),
        ] {
            plan(&above, way);
            queue.count.store(0, Relaxed);
            queue.longest.store(0, Relaxed);
            let first = user.submit(READ, pages)?;
            assert_eq!(queue.count.load(Relaxed), count);
            assert_eq!(queue.longest.load(Relaxed), longest as i32);
            assert_eq!(above.queue_data().calls.load(Relaxed), 1);
            // The first page is not part of the last clone.
            assert_eq!(
                first,
                if way == Plan::Part(PAGE.0, 0) {
                    0
                } else {
                    0x5a
                }
            );
        }
        // The flags are those of the bio, also if it has no data.
        plan(&above, Plan::Whole);
        for (flags, pages, steps) in [(PREFLUSH, 0, "f"), (PREFLUSH | FUA, 1, "fT"), (0, 1, "t")] {
            user.submit(WRITE | flags, pages)?;
            assert_eq!(queue.steps.lock()[..], *steps.as_bytes());
        }
        // A clone may leave out the data, but only if something is left.
        plan(&above, Plan::Flush);
        user.submit(WRITE | PREFLUSH, 1)?;
        assert_eq!(queue.steps.lock()[..], *b"f");
        assert!(user.submit(WRITE, 1).is_err());
        assert_eq!(above.queue_data().refused.load(Relaxed), EINVAL.to_errno());
        for (flags, pages) in [(PREFLUSH, 0), (PREFLUSH, 1), (0, 1)] {
            plan(&above, Plan::Backwards);
            assert!(user.submit(WRITE | flags, pages).is_err());
            assert_eq!(above.queue_data().refused.load(Relaxed), EINVAL.to_errno());
        }
        Ok(())
    }

    #[test]
    fn an_error_of_a_clone_is_that_of_the_bio() -> Result {
        let below = lower(c"rust_test_below", QueueLimits::default())?;
        let above = upper(
            c"rust_test_above",
            Some(open(&below, Access::ReadWrite)?),
            None,
        )?;
        let user = Open::new(above.part0())?;
        for (way, action, result) in [
            // The timer of the other disk ends the clones in an interrupt.
            (Plan::Pages, Action::Delay, Ok(0)),
            (Plan::Pages, Action::DelayError, Err(ENOSPC)),
            (Plan::Whole, Action::Drop, Err(EIO)),
            (Plan::Whole, Action::End, Ok(0)),
            (Plan::Drop, Action::End, Err(EIO)),
            (Plan::Drop, Action::Delay, Err(EIO)),
        ] {
            plan(&above, way);
            set(&below, action);
            assert_eq!(user.submit(WRITE, 4).map(|_| 0), result);
            assert_eq!(above.queue_data().calls.load(Relaxed), 1);
        }
        // Without a clone, the driver does not get the bio back.
        plan(&above, Plan::Nothing);
        assert_eq!(user.submit(WRITE, 1).map(|_| 0), Ok(0));
        assert_eq!(above.queue_data().calls.load(Relaxed), 0);
        set(&below, Action::End);
        Ok(())
    }

    #[test]
    fn clones_that_must_not_be_submitted_are_refused() -> Result {
        let blocks = QueueLimits {
            logical_block_size: 1024,
            ..QueueLimits::default()
        };
        let aligned = QueueLimits {
            dma_alignment: 1023,
            ..QueueLimits::default()
        };
        let end = 4 * PAGE.0;
        for (limits, access, way, error) in [
            (
                QueueLimits::default(),
                Access::ReadWrite,
                Plan::Locked,
                EDEADLK,
            ),
            (
                QueueLimits::default(),
                Access::ReadWrite,
                Plan::Part(end, 0),
                EINVAL,
            ),
            (
                QueueLimits::default(),
                Access::ReadWrite,
                Plan::Part(end + 1, 0),
                EINVAL,
            ),
            (
                QueueLimits::default(),
                Access::ReadOnly,
                Plan::Whole,
                EACCES,
            ),
            (blocks, Access::ReadWrite, Plan::Whole, EINVAL),
            (aligned, Access::ReadWrite, Plan::Whole, EINVAL),
        ] {
            let below = lower(c"rust_test_below", limits)?;
            let above = upper(c"rust_test_above", Some(open(&below, access)?), None)?;
            plan(&above, way);
            let count = below.queue_data().count.load(Relaxed);
            assert!(Open::new(above.part0())?.submit(WRITE, 4).is_err());
            assert_eq!(above.queue_data().refused.load(Relaxed), error.to_errno());
            assert_eq!(below.queue_data().count.load(Relaxed), count);
        }
        // A disk must not wait for itself.
        let above = upper(c"rust_test_above", None, None)?;
        // SAFETY: The disk was added, so it has a block device.
        let dev = unsafe { (*above.part0()).bd_dev };
        let (major, minor) = (
            dev >> bindings::MINORBITS,
            dev & ((1 << bindings::MINORBITS) - 1),
        );
        let user = Open::new(above.part0())?;
        let own = BdevFile::open_by_dev(major, minor, Access::ReadWrite)?;
        *above.queue_data().other.lock() = Some(own);
        assert!(user.submit(READ, 1).is_err());
        assert_eq!(above.queue_data().refused.load(Relaxed), EDEADLK.to_errno());
        let own = above.queue_data().other.lock().take();
        drop(own);
        Ok(())
    }

    #[test]
    fn parts_are_aligned_to_the_blocks_of_the_other_disk() -> Result {
        let limits = QueueLimits {
            logical_block_size: 4096,
            ..QueueLimits::default()
        };
        let below = lower(c"rust_test_below", limits)?;
        let other = open(&below, Access::ReadWrite)?;
        let stacked = other.limits()?;
        assert_eq!(stacked.logical_block_size, 4096);
        assert_eq!(other.capacity(), Sectors::from_mebibytes(1));
        let above: GenDisk<Upper, Bios> = GenDiskBuilder::bio_based(static_lock_class!())
            .capacity(other.capacity())
            .limits(stacked)
            .build(c"rust_test_above", Queue::new(Some(other), None))?
            .add()?;
        let user = Open::new(above.part0())?;
        for (way, result) in [
            (Plan::Part(8, 8), Ok(0)),
            (Plan::Part(1, 8), Err(EINVAL)),
            (Plan::Part(8, 1), Err(EINVAL)),
        ] {
            plan(&above, way);
            assert_eq!(user.submit(READ, 4).map(|_| 0).map_err(|_| EINVAL), result);
            let refused = above.queue_data().refused.load(Relaxed);
            assert_eq!((refused == EINVAL.to_errno()), result.is_err());
        }
        Ok(())
    }

    #[test]
    fn the_driver_may_submit_clones_again() -> Result {
        let below = lower(c"rust_test_below", QueueLimits::default())?;
        let back = Event::new()?;
        let above = upper(
            c"rust_test_above",
            Some(open(&below, Access::ReadWrite)?),
            Some(Ended(back.clone())),
        )?;
        let user = Open::new(above.part0())?;
        plan(&above, Plan::Keep);
        set(&below, Action::DelayError);
        let done = Event::new()?;
        let signal = Ended(done.clone());
        let task = lower::SendOpen(user);
        crate::workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            let task = task;
            assert_eq!(task.0.submit(READ, 1), Ok(0x5a));
            drop(task);
            drop(signal);
        })?;
        back.completion.wait_for_completion();
        let bio = above.queue_data().kept.lock().take().ok_or(EIO)?;
        plan(&above, Plan::Whole);
        set(&below, Action::End);
        assert!(!done.happened.load(Relaxed));
        let mut clones = bio.into_clones();
        above.queue_data().submit(&mut clones)?;
        clones.end(Ok(()));
        done.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn the_callback_cannot_submit_clones_or_wait() -> Result {
        // Without a preemption count it is not known that it must not sleep.
        if !cfg!(CONFIG_PREEMPT_COUNT) {
            return Ok(());
        }
        let below = lower(c"rust_test_below", QueueLimits::default())?;
        let again = lower(c"rust_test_again", QueueLimits::default())?;
        let event = Event::new()?;
        let other = open(&below, Access::ReadWrite)?;
        let above = upper(c"rust_test_above", Some(other), Some(Ended(event.clone())))?;
        let user = Open::new(above.part0())?;
        above
            .queue_data()
            .again
            .populate(open(&again, Access::ReadWrite)?);
        let count = again.queue_data().count.load(Relaxed);
        for action in [Action::End, Action::Delay] {
            plan(&above, Plan::Again);
            set(&below, action);
            // No clone was submitted, so the bio ends.
            assert_eq!(user.submit(READ, 1).map(|_| 0), Err(EDEADLK).map_err(as_io));
            assert_eq!(above.queue_data().calls.load(Relaxed), 1);
            assert_eq!(above.queue_data().refused.load(Relaxed), EDEADLK.to_errno());
        }
        assert_eq!(again.queue_data().count.load(Relaxed), count);
        plan(&above, Plan::Remove);
        set(&below, Action::End);
        let queue: *const Queue = above.queue_data();
        // SAFETY: The disk is not removed before the read below.
        *unsafe { &*queue }.condemned.lock() = Some(above);
        assert_eq!(user.submit(READ, 1), Ok(0x5a));
        event.completion.wait_for_completion();
        Ok(())
    }

    /// Returns the error that a user gets for one of the driver.
    fn as_io(error: Error) -> Error {
        BlkStatus::from(error).into()
    }

    #[test]
    fn removal_waits_for_clones() -> Result {
        let below = lower(c"rust_test_below", QueueLimits::default())?;
        let event = Event::new()?;
        let above = upper(
            c"rust_test_above",
            Some(open(&below, Access::ReadWrite)?),
            Some(Ended(event.clone())),
        )?;
        let task = lower::SendOpen(Open::new(above.part0())?);
        set(&below, Action::Keep);
        let done = Event::new()?;
        let signal = Ended(done.clone());
        crate::workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            let task = task;
            let result = task.0.submit(READ, 1);
            drop(task);
            assert!(result.is_ok());
            drop(signal);
        })?;
        let queue = below.queue_data();
        queue.arrived.wait_for_completion();
        let bio = queue.kept.lock().take().ok_or(EIO)?;
        set(&below, Action::End);
        let removed = Event::new()?;
        let signal = Ended(removed.clone());
        crate::workqueue::system().try_spawn(GFP_KERNEL, move || {
            drop(above);
            drop(signal);
        })?;
        crate::time::delay::fsleep(Delta::from_millis(50));
        assert!(!event.happened.load(Relaxed) && !removed.happened.load(Relaxed));
        bio.end(Ok(()));
        removed.completion.wait_for_completion();
        assert!(event.happened.load(Relaxed));
        done.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn a_device_has_one_opener() -> Result {
        let below = lower(c"rust_test_below", QueueLimits::default())?;
        let first = open(&below, Access::ReadOnly)?;
        assert_eq!(open(&below, Access::ReadWrite).err(), Some(EBUSY));
        if cfg!(CONFIG_PREEMPT_COUNT) {
            let lock = KBox::pin_init(new_spinlock!(()), GFP_KERNEL)?;
            let _guard = lock.lock();
            assert_eq!(open(&below, Access::ReadWrite).err(), Some(EDEADLK));
            assert_eq!(first.limits().err(), Some(EDEADLK));
        }
        // The claim is given up at once, though the file is closed later.
        drop(first);
        drop(open(&below, Access::ReadWrite)?);
        let failed = [
            (
                BdevFile::open_by_path(c"/nothing", Access::ReadOnly),
                ENOENT,
            ),
            (BdevFile::open_by_dev(1 << 12, 0, Access::ReadOnly), EINVAL),
            (BdevFile::open_by_dev(0, 1 << 20, Access::ReadOnly), EINVAL),
            (BdevFile::open_by_dev(0, 0, Access::ReadOnly), ENXIO),
        ];
        for (opened, error) in failed {
            assert_eq!(opened.err(), Some(error));
        }
        Ok(())
    }
}
