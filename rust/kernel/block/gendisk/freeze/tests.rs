// SPDX-License-Identifier: GPL-2.0

//! Tests of disks that are frozen.

#[macros::kunit_tests(rust_block_gendisk_freeze)]
mod suite {
    use super::super::*;
    use crate::{
        block::{
            gendisk::{
                GenDisk,
                GenDiskBuilder, //
            },
            mq::{
                memalloc_noio,
                IdleRequest,
                NoTimer,
                NonBlocking,
                Operations,
                QueueResult,
                TagSet,
                TagSetOptions, //
            },
            Sectors, //
        },
        error::from_err_ptr,
        static_lock_class,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            rcu,
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue, //
    };

    /// A driver that ends all requests at once.
    struct Driver;

    #[vtable]
    impl Operations for Driver {
        type Context = NonBlocking;
        type TagSetData = ();
        type QueueData = ();
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &(), _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            rq.start().end(Ok(()));
            Ok(())
        }
    }

    fn disk(name: &CStr) -> Result<GenDisk<Driver>> {
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(name, Ok(()))?
            .add()
    }

    /// A request that a disk has accepted, and has to free.
    struct Accepted(*mut bindings::request);

    // SAFETY: Any task may free a request.
    unsafe impl Send for Accepted {}

    impl Drop for Accepted {
        fn drop(&mut self) {
            // SAFETY: The test owns the request, which was not started.
            unsafe { bindings::blk_mq_free_request(self.0) };
        }
    }

    /// Has the disk accept a request.
    fn accept_or_wait(disk: &GenDisk<Driver>) -> Result<Accepted> {
        allocate(disk, 0)
    }

    /// Has the disk accept a request, or fails with `EAGAIN` if that would have to wait.
    fn accept(disk: &GenDisk<Driver>) -> Result<Accepted> {
        allocate(disk, bindings::BLK_MQ_REQ_NOWAIT)
    }

    fn allocate(disk: &GenDisk<Driver>, flags: bindings::blk_mq_req_flags_t) -> Result<Accepted> {
        let op = bindings::req_op_REQ_OP_DRV_IN;
        // SAFETY: The disk was added, so it has a block device with a queue.
        let queue = unsafe { (*disk.part0()).bd_queue };
        // SAFETY: As above.
        from_err_ptr(unsafe { bindings::blk_mq_alloc_request(queue, op, flags) }).map(Accepted)
    }

    /// Returns whether the disk accepts a request within some seconds.
    fn accepts(disk: &GenDisk<Driver>) -> bool {
        (0..3000).any(|_| {
            fsleep(Delta::from_millis(1));
            accept(disk).is_ok()
        })
    }

    #[test]
    fn a_disk_accepts_nothing_until_the_last_guard_is_dropped() -> Result {
        let disk = disk(c"rust_test_freeze")?;
        drop(accept(&disk)?);
        let (first, second) = (disk.freeze_start()?, disk.freeze_start()?);
        let with_two = accept(&disk).err();
        drop(first);
        let with_one = accept(&disk).err();
        {
            // Where nothing may sleep.
            let _section = rcu::read_lock();
            drop(second);
        }
        let accepts = accepts(&disk);
        assert_eq!((with_two, with_one), (Some(EAGAIN), Some(EAGAIN)));
        assert!(accepts);
        Ok(())
    }

    #[test]
    fn what_was_accepted_is_waited_for() -> Result {
        let disk = disk(c"rust_test_freeze_wait")?;
        let has_ended = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let (rq, flag) = (accept(&disk)?, has_ended.clone());
        let frozen = disk.freeze_start()?;
        workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            fsleep(Delta::from_millis(100));
            flag.store(true, Relaxed);
            drop(rq);
        })?;
        let early = has_ended.load(Relaxed) || frozen.wait_timeout(Delta::from_millis(1))?;
        frozen.wait()?;
        assert!(frozen.wait_timeout(Delta::from_millis(1))?);
        assert!(!early);
        assert!(has_ended.load(Relaxed));
        Ok(())
    }

    #[test]
    fn a_task_lets_io_in_without_a_worker() -> Result {
        let disk = disk(c"rust_test_unfreeze")?;
        let frozen = disk.freeze_start()?;
        memalloc_noio(|| frozen.unfreeze());
        let here = accept(&disk);
        let frozen = disk.freeze_start()?;
        {
            let _section = rcu::read_lock();
            frozen.unfreeze();
        }
        assert!(here.is_ok());
        assert!(accepts(&disk));
        Ok(())
    }

    #[test]
    fn a_guard_outlives_its_disk() -> Result {
        let disk = disk(c"rust_test_freeze_gone")?;
        let frozen = disk.freeze_start()?;
        drop(disk);
        frozen.wait()
    }

    #[test]
    fn a_dead_disk_cannot_be_frozen_and_fails_what_waits() -> Result {
        let disk = disk(c"rust_test_freeze_dead")?;
        let frozen = disk.freeze_start()?;
        let before = accept(&disk).err();
        disk.mark_dead()?;
        let after = accept_or_wait(&disk).err();
        assert_eq!((before, after), (Some(EAGAIN), Some(ENODEV)));
        assert_eq!(disk.freeze_start().err(), Some(ENODEV));
        drop(frozen);
        Ok(())
    }

    #[test]
    fn a_disk_is_frozen_only_where_the_caller_can_wait() -> Result {
        let disk = disk(c"rust_test_freeze_atomic")?;
        if cfg!(CONFIG_PREEMPT_COUNT) {
            let _section = rcu::read_lock();
            assert_eq!(disk.freeze_start().err(), Some(EDEADLK));
        }
        // As in a callback that may sleep.
        let frozen = disk.freeze_start()?;
        memalloc_noio(|| {
            assert_eq!(disk.freeze_start().err(), Some(EDEADLK));
            assert_eq!(frozen.wait(), Err(EDEADLK));
            assert_eq!(frozen.wait_timeout(Delta::ZERO), Err(EDEADLK));
        });
        frozen.wait()
    }
}
