// SPDX-License-Identifier: GPL-2.0

//! Tests of zoned disks.

#[macros::kunit_tests(rust_block_zoned_gendisk)]
mod suite {
    use super::super::*;
    use crate::{
        block::{
            gendisk::GenDiskBuilder,
            limits::QueueLimits,
            mq::{
                test_driver,
                Blocking,
                IdleRequest,
                NoTimer,
                Op,
                QueueResult,
                TagSetOptions, //
            },
            zone::{
                ZoneCondition,
                ZoneInfo,
                ZoneReporter, //
            },
            BlkStatus,
            Sector,
            Sectors, //
        },
        error::from_err_ptr,
        static_lock_class,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Completion, //
        },
        workqueue,
    };
    use core::ptr;

    /// What the driver does when it is asked for its zones.
    #[derive(Clone, Copy, PartialEq)]
    enum Report {
        /// Reports all of them.
        All,
        /// Reports all of them, together.
        Together,
        /// Reports the first one, and then the others with a capacity that they cannot have.
        TooLarge,
        /// Reports all of them slowly, once it was told.
        Slow,
        /// Reports the first one.
        First,
        /// Reports a wrong write pointer of the second one, and ignores the error.
        Wrong,
        /// Reports another capacity of the second one.
        Varying,
        /// Reports the first one, then fails.
        Fails,
    }

    struct Driver;

    /// The driver's data of a disk. It is in use by a report until `finished`.
    struct Queue {
        report: Report,
        slow: Atomic<bool>,
        /// The number of zones that the last report was asked for.
        wanted: Atomic<u32>,
        shared: Arc<Shared>,
    }

    #[pin_data]
    struct Shared {
        #[pin]
        started: Completion,
        #[pin]
        ended: Completion,
        finished: Atomic<bool>,
        dropped_in_use: Atomic<bool>,
    }

    impl Drop for Queue {
        fn drop(&mut self) {
            let finished = self.shared.finished.load(Relaxed);
            self.shared.dropped_in_use.store(!finished, Relaxed);
        }
    }

    #[vtable]
    impl Operations for Driver {
        type Context = Blocking;
        type TagSetData = ();
        type QueueData = Queue;
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &Queue, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn report_zones(queue: &Queue, reporter: &mut ZoneReporter<'_>) -> Result {
            if queue.slow.load(Relaxed) {
                queue.shared.started.complete_all();
                fsleep(Delta::from_millis(50));
                queue.shared.finished.store(true, Relaxed);
            }
            let mut count = 0;
            let wanted = reporter.remaining();
            queue.wanted.store(wanted, Relaxed);
            if matches!(queue.report, Report::Together | Report::TooLarge) {
                return Driver::report_together(queue, reporter);
            }
            while let Some(zone) = reporter.next_zone() {
                if count == 1 && queue.report == Report::First {
                    break;
                }
                if count == 1 && queue.report == Report::Fails {
                    return Err(EBADF);
                }
                let is_second = count == 1;
                let info = ZoneInfo {
                    condition: ZoneCondition::Closed,
                    capacity: match queue.report {
                        Report::Varying if is_second => Sectors(5),
                        _ => zone.len().min(Sectors(1000)),
                    },
                    write_pointer: Some(match queue.report {
                        Report::Wrong if is_second => Sector(1),
                        _ => zone.start() + Sectors(8),
                    }),
                };
                let reported = zone.report(&info);
                assert!(reported.is_err() || !is_second || queue.report != Report::Wrong);
                count += 1;
                let remaining = reported.map_or(0, |()| wanted - count);
                assert_eq!(reporter.remaining(), remaining);
            }
            Ok(())
        }

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let mut rq = rq.start();
            if rq.op() != Op::ZoneAppend {
                assert_eq!(rq.set_append_sector(rq.sector()), Err(EINVAL));
                rq.end(Ok(()));
                return Ok(());
            }
            let zone = rq.sector();
            // The sector before the zone, and those that are too near to its end or behind it.
            for distance in [0, ZONE.0 - rq.sectors().0 + 1, ZONE.0, u64::MAX - zone.0] {
                let at = match distance {
                    0 => Sector(zone.0 - 1),
                    distance => zone + Sectors(distance),
                };
                assert_eq!(rq.set_append_sector(at), Err(EINVAL));
                assert_eq!(rq.sector(), zone);
            }
            let last = zone + (ZONE - rq.sectors());
            assert_eq!(rq.set_append_sector(last), Ok(()));
            let set = rq.set_append_sector(zone + Sectors(8));
            rq.end(set.map_err(|_| BlkStatus::IOERR));
            Ok(())
        }
    }

    impl Driver {
        fn report_together(queue: &Queue, reporter: &mut ZoneReporter<'_>) -> Result {
            let wanted = reporter.remaining();
            let states = [8; 10].map(Sectors);
            let mut report = |capacity, states: &[Sectors]| {
                let reported = reporter.report_sequential(capacity, states, |&written, zone| {
                    zone.set(ZoneCondition::Closed, written)
                });
                (reported, reporter.remaining())
            };
            // None, one, then more than are wanted.
            assert_eq!(report(Sectors(1000), &[]), (Ok(()), wanted));
            let (first, remaining) = report(Sectors(1000), &states[..1]);
            if first.is_ok() {
                assert_eq!(remaining, wanted.saturating_sub(1));
            }
            if queue.report == Report::TooLarge && remaining != 0 {
                assert_eq!(report(ZONE + Sectors(1), &states), (Err(EINVAL), 0));
            }
            let (all, remaining) = report(Sectors(1000), &states);
            assert_eq!(remaining, 0);
            // The first error remains.
            match queue.report {
                Report::TooLarge if wanted > 1 && first.is_ok() => assert_eq!(all, Err(EINVAL)),
                _ if first.is_err() => assert_eq!(all, first),
                _ => {}
            }
            Ok(())
        }
    }

    const ZONE: Sectors = Sectors(1024);

    fn build(report: Report, limits: QueueLimits, capacity: Sectors) -> Result<NewDisk<Driver>> {
        let shared = Arc::pin_init(
            pin_init!(Shared {
                started <- Completion::new(),
                ended <- Completion::new(),
                finished: Atomic::new(true),
                dropped_in_use: Atomic::new(false),
            }),
            GFP_KERNEL,
        )?;
        let queue = Queue {
            report,
            slow: Atomic::new(false),
            wanted: Atomic::new(0),
            shared,
        };
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        GenDiskBuilder::new(tags, static_lock_class!())
            .limits(limits)
            .capacity(capacity)
            .build(c"rust_test_zoned", Ok(queue))
    }

    fn limits() -> QueueLimits {
        QueueLimits {
            zoned: true,
            chunk_sectors: ZONE,
            max_hw_zone_append_sectors: Sectors(64),
            ..QueueLimits::default()
        }
    }

    /// A disk of four zones, and a part of one.
    fn disk(report: Report) -> Result<GenDisk<Driver>> {
        build(report, limits(), Sectors(4 * ZONE.0 + 100))?.add()
    }

    /// Opens a disk, to be closed by `bdev_fput`. Also returns its block device.
    fn open(disk: &GenDisk<Driver>) -> Result<(*mut c_void, *mut bindings::block_device)> {
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

    /// Counts the zones that are reported, and fails at the one with number `fail_at`.
    struct Seen {
        zones: [(u64, u64); 8],
        count: usize,
        fail_at: usize,
    }

    /// # Safety
    ///
    /// `data` is a `Seen`, and `zone` valid.
    unsafe extern "C" fn see(
        zone: *mut bindings::blk_zone,
        idx: c_uint,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirement.
        let (zone, seen) = unsafe { (&*zone, &mut *data.cast::<Seen>()) };
        if seen.count == seen.fail_at {
            return E2BIG.to_errno();
        }
        assert_eq!(seen.count, idx as usize);
        assert_eq!((zone.wp, zone.cond, zone.type_), (zone.start + 8, 4, 2));
        seen.zones[seen.count] = (zone.start, zone.len);
        seen.count += 1;
        0
    }

    /// Asks for zones. Returns their number, and what was reported.
    fn zones(
        part: *mut bindings::block_device,
        sector: u64,
        count: u32,
        fail_at: usize,
    ) -> (c_int, Seen) {
        let mut seen = Seen {
            zones: [(0, 0); 8],
            count: 0,
            fail_at,
        };
        // SAFETY: The device is open, and `see` gets its data.
        let result = unsafe {
            bindings::blkdev_report_zones(part, sector, count, Some(see), (&raw mut seen).cast())
        };
        (result, seen)
    }

    #[test]
    fn zones_are_reported() -> Result {
        if !cfg!(CONFIG_BLK_DEV_ZONED) {
            return Ok(());
        }
        report_of(disk(Report::All)?)?;
        report_of(disk(Report::Together)?)
    }

    /// Checks the zone reports of a disk that makes them in one of two ways.
    fn report_of(disk: GenDisk<Driver>) -> Result {
        let (file, part) = open(&disk)?;
        let wanted = || disk.queue_data().wanted.load(Relaxed);
        let (count, seen) = zones(part, 0, 100, 100);
        assert_eq!((count, wanted()), (5, 5));
        assert_eq!(seen.zones[..2], [(0, 1024), (1024, 1024)]);
        assert_eq!(seen.zones[4], (4096, 100));
        // From the zone that has the sector, and not more than wanted.
        let (count, seen) = zones(part, 1500, 2, 100);
        assert_eq!(
            (count, &seen.zones[..2]),
            (2, &[(1024, 1024), (2048, 1024)][..])
        );
        assert_eq!(wanted(), 2);
        assert_eq!((zones(part, 4195, 2, 100).0, wanted()), (1, 1));
        // Behind the last zone there is none.
        assert_eq!(zones(part, 4196, 2, 100).0, 0);
        assert_eq!(zones(part, u64::MAX, 2, 100).0, 0);
        // The error of C comes back, and nothing is reported after it.
        let (count, seen) = zones(part, 0, 100, 3);
        assert_eq!((count, seen.count), (E2BIG.to_errno(), 3));
        let (count, seen) = zones(part, 0, 100, 0);
        assert_eq!((count, seen.count), (E2BIG.to_errno(), 0));
        // SAFETY: The test owns the file, and does not use it again.
        unsafe { bindings::bdev_fput(file.cast()) };
        Ok(())
    }

    #[test]
    fn a_disk_whose_zones_are_wrong_is_not_added() {
        if !cfg!(CONFIG_BLK_DEV_ZONED) {
            return;
        }
        for (report, error) in [
            (Report::First, ENODEV),
            (Report::Wrong, EINVAL),
            (Report::Varying, ENODEV),
            (Report::Fails, EBADF),
            (Report::TooLarge, EINVAL),
        ] {
            assert_eq!(disk(report).err(), Some(error));
        }
    }

    #[test]
    fn impossible_zones_are_rejected() {
        let refused = |limits, capacity| {
            let built = build(Report::All, limits, capacity);
            assert_eq!(built.err(), Some(EINVAL));
        };
        let with_size = |chunk_sectors| QueueLimits {
            chunk_sectors,
            ..limits()
        };
        refused(limits(), Sectors::ZERO);
        refused(with_size(Sectors::ZERO), ZONE);
        refused(with_size(Sectors(1000)), ZONE);
        refused(with_size(Sectors(1)), Sectors(1 << 40));
        // A driver that cannot report zones.
        let tags = TagSet::<test_driver::Driver>::new(TagSetOptions::default(), Ok(()));
        let built = tags.and_then(|tags| {
            GenDiskBuilder::new(tags, static_lock_class!())
                .limits(limits())
                .capacity(ZONE)
                .build(c"rust_test_unzoned", Ok(()))
        });
        assert_eq!(built.err(), Some(EINVAL));
    }

    /// Asks the operations of a disk for its first zone, as C does for a disk that is open.
    ///
    /// # Safety
    ///
    /// The disk was added, and is open.
    unsafe fn ask(disk: *mut bindings::gendisk) -> c_int {
        // SAFETY: By the safety requirement.
        let report = unsafe { (*(*disk).fops).report_zones };
        // SAFETY: By the safety requirement. Without arguments, C only looks at the zone.
        report.map_or(0, |report| unsafe { report(disk, 0, 1, ptr::null_mut()) })
    }

    #[test]
    fn a_report_ends_before_the_data_is_dropped() -> Result {
        if !cfg!(CONFIG_BLK_DEV_ZONED) {
            return Ok(());
        }
        let disk = disk(Report::Slow)?;
        let (file, _) = open(&disk)?;
        let shared = disk.queue_data().shared.clone();
        shared.finished.store(false, Relaxed);
        disk.queue_data().slow.store(true, Relaxed);
        let raw = disk.disk.disk.as_ptr();
        let (address, asker) = (raw.expose_provenance(), shared.clone());
        workqueue::system_highpri().try_spawn(GFP_KERNEL, move || {
            // SAFETY: The test keeps the disk open until this has ended.
            let count = unsafe { ask(ptr::with_exposed_provenance_mut(address)) };
            assert_eq!(count, 1);
            asker.ended.complete_all();
        })?;
        shared.started.wait_for_completion();
        drop(disk);
        assert!(shared.finished.load(Relaxed));
        assert!(!shared.dropped_in_use.load(Relaxed));
        // SAFETY: The disk is still open.
        assert_eq!(unsafe { ask(raw) }, ENODEV.to_errno());
        shared.ended.wait_for_completion();
        // SAFETY: The test owns the file, and does not use it again.
        unsafe { bindings::bdev_fput(file.cast()) };
        Ok(())
    }

    #[test]
    fn the_submitter_gets_the_position_of_an_append() -> Result {
        if !cfg!(CONFIG_BLK_DEV_ZONED) {
            return Ok(());
        }
        let disk = disk(Report::All)?;
        let (file, part) = open(&disk)?;
        let page = crate::page::Page::alloc_page(GFP_KERNEL)?;
        let flags = bindings::req_op_REQ_OP_ZONE_APPEND | (1 << bindings::req_flag_bits___REQ_SYNC);
        // SAFETY: The device is open, and the pool is that of the block layer.
        let bio = unsafe {
            let pool = &raw mut bindings::fs_bio_set;
            bindings::bio_alloc_bioset(part, 1, flags, GFP_KERNEL.as_raw(), pool)
        };
        let bio = NonNull::new(bio).ok_or(ENOMEM)?.as_ptr();
        // SAFETY: The bio has room for the page, which outlives it.
        unsafe { bindings::__bio_add_page(bio, page.as_ptr(), 4096, 0) };
        // SAFETY: The bio is not submitted yet.
        unsafe { (*bio).bi_iter.bi_sector = 2048 };
        // SAFETY: The bio is complete, and ends before this returns.
        let result = to_result(unsafe { bindings::submit_bio_wait(bio) });
        // SAFETY: The bio has ended.
        let sector = unsafe { (*bio).bi_iter.bi_sector };
        // SAFETY: The test owns the bio, and does not use it again.
        unsafe { bindings::bio_put(bio) };
        // SAFETY: As above, for the file.
        unsafe { bindings::bdev_fput(file.cast()) };
        result?;
        assert_eq!(sector, 2056);
        Ok(())
    }
}
