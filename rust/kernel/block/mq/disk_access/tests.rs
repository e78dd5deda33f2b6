// SPDX-License-Identifier: GPL-2.0

//! Tests of ioctls, of handles to disks, of requests that are made by both.

#[macros::kunit_tests(rust_block_mq_disk_access)]
mod suite {
    use super::super::{
        super::{
            Blocking,
            IdleRequest,
            NoTimer,
            Op,
            QueueResult,
            TagSet,
            TagSetOptions, //
        },
        *, //
    };
    use crate::{
        block::{
            gendisk::{
                GenDisk,
                GenDiskBuilder, //
            },
            BlkStatus,
            Sectors, //
        },
        sync::static_lock_class,
        time::{
            delay::fsleep,
            Delta, //
        },
        uaccess::UserPtr,
        workqueue, //
    };

    /// A driver with these ioctls: 1 returns the square of a number, by a request; 2 how the disk
    /// was opened; 3 a number that is too large; 4 fails.
    struct Driver;

    #[vtable]
    impl Operations for Driver {
        type Context = Blocking;
        type TagSetData = ();
        type QueueData = u32;
        type HwData = ();
        type RequestData = Atomic<u32>;
        type Timer = NoTimer;

        fn init_hw_queue(_: &u32, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<Atomic<u32>> {
            Atomic::new(0)
        }

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            match rq.op() {
                Op::DriverIn => {
                    let number = rq.data().load(Relaxed);
                    rq.data().store(number * number, Relaxed);
                }
                Op::DriverOut => return Err(rq.reject(BlkStatus::TARGET)),
                _ => (),
            }
            rq.start().end(Ok(()));
            Ok(())
        }

        fn ioctl(
            disk: &DiskAccess<'_, Self>,
            caller: IoctlCaller,
            cmd: u32,
            arg: usize,
        ) -> Result<u32> {
            assert_eq!(*disk.queue_data(), 7);
            match cmd {
                1 => square(disk, arg as u32),
                2 => Ok(u32::from(caller.can_write)
                    | u32::from(caller.is_partition) << 1
                    | u32::from(caller.is_compat) << 2),
                3 => Ok(1 << 31),
                4 => Err(EACCES),
                _ => Err(ENOTTY),
            }
        }
    }

    fn square(disk: &DiskAccess<'_, Driver>, number: u32) -> Result<u32> {
        let rq = disk.request(PassthroughOp::In)?;
        rq.data().store(number, Relaxed);
        let rq = rq.execute()?;
        rq.status()?;
        Ok(rq.data().load(Relaxed))
    }

    fn disk() -> Result<GenDisk<Driver>> {
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_test_ioctl", Ok(7))?
            .add()
    }

    /// Has C call the driver for an ioctl of the whole disk, which was opened as `mode` says.
    fn ioctl(disk: &GenDisk<Driver>, mode: u32, cmd: u32, arg: usize) -> Result<c_int> {
        let part = disk.part0();
        // SAFETY: The disk was added, so it has a block device.
        let fops = unsafe { (*(*part).bd_disk).fops };
        // SAFETY: As above. The operations exist as long as the disk.
        let callback = unsafe { (*fops).ioctl }.ok_or(ENOTTY)?;
        // SAFETY: The disk is not removed meanwhile.
        Ok(unsafe { callback(part, mode, cmd, arg) })
    }

    #[test]
    fn ioctls_reach_the_driver() -> Result {
        let disk = disk()?;
        assert_eq!(ioctl(&disk, 1, 1, 12)?, 144);
        // C's `BLK_OPEN_READ`, then `BLK_OPEN_WRITE` too.
        assert_eq!(ioctl(&disk, 1, 2, 0)?, 0);
        assert_eq!(ioctl(&disk, 3, 2, 0)?, 1);
        assert_eq!(ioctl(&disk, 1, 3, 0)?, EOVERFLOW.to_errno());
        assert_eq!(ioctl(&disk, 1, 4, 0)?, EACCES.to_errno());
        assert_eq!(ioctl(&disk, 1, 5, 0)?, ENOTTY.to_errno());
        Ok(())
    }

    #[test]
    fn a_handle_gives_access_until_the_removal() -> Result {
        let disk = disk()?;
        let handle = disk.handle().ok_or(EINVAL)?;
        let other = handle.clone();
        assert_eq!(handle.access(|disk| square(disk, 5)), Ok(25));
        drop(disk);
        assert_eq!(handle.access(|disk| square(disk, 5)), Err(ENODEV));
        assert_eq!(other.access(|_| Ok(())), Err(ENODEV));
        Ok(())
    }

    #[test]
    fn the_removal_waits_for_an_access() -> Result {
        let disk = disk()?;
        let handle = disk.handle().ok_or(EINVAL)?;
        let entered = Arc::pin_init(Completion::new(), GFP_KERNEL)?;
        let ended = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let (inside, last) = (entered.clone(), ended.clone());
        let task = move || {
            let _ = handle.access(|disk| {
                inside.complete_all();
                fsleep(Delta::from_millis(50));
                // The disk is being removed, but its data is there.
                last.store(*disk.queue_data(), Relaxed);
                Ok(())
            });
        };
        workqueue::system().try_spawn(GFP_KERNEL, task)?;
        entered.wait_for_completion();
        drop(disk);
        assert_eq!(ended.load(Relaxed), 7);
        Ok(())
    }

    #[test]
    fn the_status_is_that_of_the_driver() -> Result {
        let disk = disk()?;
        let handle = disk.handle().ok_or(EINVAL)?;
        handle.access(|disk| {
            let rq = disk.request(PassthroughOp::Out)?.execute()?;
            assert_eq!(rq.status(), Err(BlkStatus::TARGET));
            Ok(())
        })
    }

    #[test]
    fn a_kernel_thread_has_no_memory_of_a_user() -> Result {
        let disk = disk()?;
        let handle = disk.handle().ok_or(EINVAL)?;
        handle.access(|disk| {
            let map = |len| {
                let rq = disk.request(PassthroughOp::In)?;
                rq.with_user_memory(UserPtr::from_addr(0x1000), len)
                    .map(drop)
            };
            // There is no such task in a unit test.
            assert_eq!(map(512), Err(EFAULT));
            assert_eq!(map(0), Err(EINVAL));
            let buffer = KVVec::from_elem(0u8, 512, GFP_KERNEL)?;
            let rq = disk.request(PassthroughOp::In)?.with_buffer(buffer)?;
            let mapped = rq.with_user_memory(UserPtr::from_addr(0x1000), 512);
            assert_eq!(mapped.err(), Some(EINVAL));
            Ok(())
        })
    }

    #[test]
    fn requests_that_are_not_executed_are_freed() -> Result {
        let disk = disk()?;
        let handle = disk.handle().ok_or(EINVAL)?;
        let depth = disk.tag_set().depth();
        handle.access(|disk| {
            for _ in 0..2 * depth {
                drop(disk.request(PassthroughOp::In)?);
            }
            Ok(())
        })
    }
}
