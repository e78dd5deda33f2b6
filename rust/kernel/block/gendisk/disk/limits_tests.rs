// SPDX-License-Identifier: GPL-2.0

//! Tests of limits that change while a disk is in use.

#[macros::kunit_tests(rust_block_gendisk_limits)]
mod suite {
    use super::super::*;
    use crate::{
        block::{
            gendisk::GenDiskBuilder,
            mq::{
                IdleRequest,
                NoTimer,
                NonBlocking,
                Op,
                QueueResult,
                TagSetOptions, //
            },
        },
        error::from_err_ptr,
        static_lock_class,
        sync::atomic::{
            Atomic,
            Relaxed, //
        },
        workqueue,
    };

    /// A driver that counts flushes.
    struct Driver;

    #[vtable]
    impl Operations for Driver {
        type Context = NonBlocking;
        type TagSetData = ();
        type QueueData = Atomic<u32>;
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &Atomic<u32>, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            if rq.op() == Op::Flush {
                rq.queue_data().fetch_add(1, Relaxed);
            }
            rq.start().end(Ok(()));
            Ok(())
        }
    }

    /// The longest request of the disk that a test begins with.
    const MAX: Sectors = Sectors(1024);

    fn disk(name: &CStr) -> Result<GenDisk<Driver>> {
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        let limits = QueueLimits {
            max_hw_sectors: MAX,
            ..QueueLimits::default()
        };
        GenDiskBuilder::new(tags, static_lock_class!())
            .limits(limits)
            .capacity(Sectors::from_mebibytes(1))
            .build(name, Ok(Atomic::new(0)))?
            .add()
    }

    fn queue(disk: &GenDisk<Driver>) -> *mut bindings::request_queue {
        // SAFETY: The disk was added, so it has a block device with a queue.
        unsafe { (*disk.part0()).bd_queue }
    }

    /// Returns the limits that C has, which do not change meanwhile.
    fn raw(disk: &GenDisk<Driver>) -> bindings::queue_limits {
        // SAFETY: The queue is that of a disk.
        unsafe { core::ptr::read(&raw const (*queue(disk)).limits) }
    }

    /// Returns how many flushes reach the driver when user space asks for one.
    fn flushes(disk: &GenDisk<Driver>) -> Result<u32> {
        let before = disk.queue_data().load(Relaxed);
        // SAFETY: The disk was added, so it has a block device.
        to_result(unsafe { bindings::blkdev_issue_flush(disk.part0()) })?;
        Ok(disk.queue_data().load(Relaxed) - before)
    }

    #[test]
    fn a_write_cache_comes_and_goes() -> Result {
        let disk = disk(c"rust_test_limits")?;
        assert_eq!(flushes(&disk)?, 0);
        disk.update_limits(|limits| {
            limits.write_cache = true;
            limits.fua = true;
        })?;
        assert_eq!(flushes(&disk)?, 1);
        let mut seen = None;
        disk.update_limits(|limits| {
            seen = Some((limits.write_cache, limits.fua));
            limits.write_cache = false;
        })?;
        assert_eq!(seen, Some((true, true)));
        assert_eq!(flushes(&disk)?, 0);
        disk.update_limits(|limits| seen = Some((limits.write_cache, limits.fua)))?;
        assert_eq!(seen, Some((false, false)));
        Ok(())
    }

    #[test]
    fn what_users_have_chosen_remains() -> Result {
        /// C's `BLK_FLAG_WRITE_CACHE_DISABLED`.
        const NO_CACHE: u32 = 1 << 0;
        /// C's `BLK_FEAT_ROTATIONAL` and `BLK_FEAT_IO_STAT`.
        const FEATURES: u32 = 1 << 2 | 1 << 4;
        let disk = disk(c"rust_test_limits_user")?;
        let kind = raw(&disk).features & !FEATURES;
        // SAFETY: The queue is that of a disk. The lock that this takes is released below.
        let mut limits = unsafe { bindings::queue_limits_start_update(queue(&disk)) };
        limits.features ^= FEATURES;
        limits.flags |= NO_CACHE;
        limits.max_user_sectors = 64;
        limits.max_user_discard_sectors = 32;
        // SAFETY: As above, and the lock is held.
        to_result(unsafe {
            bindings::queue_limits_commit_update_frozen(queue(&disk), &mut limits)
        })?;
        let mut is_rotational = false;
        disk.update_limits(|limits| {
            is_rotational = limits.rotational;
            limits.max_hw_sectors = Sectors(2 * MAX.0);
            limits.max_hw_discard_sectors = MAX;
        })?;
        let after = raw(&disk);
        assert!(is_rotational);
        assert_eq!(after.features & !FEATURES, kind);
        assert_eq!(after.features & FEATURES, limits.features & FEATURES);
        assert_eq!(after.flags & NO_CACHE, NO_CACHE);
        assert_eq!((after.max_hw_sectors, after.max_sectors), (2048, 64));
        assert_eq!(
            (after.max_hw_discard_sectors, after.max_discard_sectors),
            (1024, 32)
        );
        // Less than users have chosen.
        disk.update_limits(|limits| limits.max_hw_sectors = Sectors(32))?;
        assert_eq!(raw(&disk).max_sectors, 32);
        disk.update_limits(|limits| limits.max_hw_sectors = MAX)?;
        assert_eq!(raw(&disk).max_sectors, 64);
        Ok(())
    }

    #[test]
    fn after_an_error_the_limits_are_those_of_before() -> Result {
        let disk = disk(c"rust_test_limits_error")?;
        let before = QueueLimits::from_raw(&raw(&disk))?;
        for change in [
            (|limits| limits.max_hw_sectors = Sectors(1)) as fn(&mut QueueLimits),
            |limits| limits.logical_block_size = 4096,
            |limits| limits.max_segment_size = 1,
            |limits| limits.zoned = true,
            // C finds this.
            |limits| limits.physical_block_size = 1536,
        ] {
            let changed = disk.update_limits(|limits| {
                limits.write_cache = true;
                change(limits);
            });
            assert_eq!(changed, Err(EINVAL));
            assert_eq!(QueueLimits::from_raw(&raw(&disk))?, before);
        }
        // The lock is free. Zero stands for the block size that there is.
        disk.update_limits(|limits| limits.logical_block_size = 0)?;
        assert_eq!(QueueLimits::from_raw(&raw(&disk))?, before);
        Ok(())
    }

    /// A request that a disk has accepted.
    struct Accepted(*mut bindings::request);

    // SAFETY: Any task may free a request.
    unsafe impl Send for Accepted {}

    impl Drop for Accepted {
        fn drop(&mut self) {
            // SAFETY: The test owns the request, which was not started.
            unsafe { bindings::blk_mq_free_request(self.0) };
        }
    }

    #[test]
    fn what_was_accepted_is_waited_for() -> Result {
        let disk = disk(c"rust_test_limits_wait")?;
        let has_ended = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let op = bindings::req_op_REQ_OP_DRV_IN;
        // SAFETY: The queue is that of a disk that was added.
        let rq = unsafe { bindings::blk_mq_alloc_request(queue(&disk), op, 0) };
        let (rq, flag) = (Accepted(from_err_ptr(rq)?), has_ended.clone());
        workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            fsleep(Delta::from_millis(100));
            flag.store(true, Relaxed);
            drop(rq);
        })?;
        let early = has_ended.load(Relaxed);
        disk.update_limits(|limits| limits.write_cache = true)?;
        assert!(!early);
        assert!(has_ended.load(Relaxed));
        Ok(())
    }

    #[test]
    fn limits_change_only_where_the_caller_can_wait_for_io() -> Result {
        let disk = disk(c"rust_test_limits_context")?;
        let in_callback = memalloc_noio(|| disk.update_limits(|_| ()));
        assert_eq!(in_callback, Err(EDEADLK));
        let mut inside = Ok(());
        disk.update_limits(|_| inside = disk.update_limits(|_| ()))?;
        assert_eq!(inside, Err(EDEADLK));
        disk.mark_dead()?;
        assert_eq!(disk.update_limits(|_| ()), Err(ENODEV));
        Ok(())
    }
}
