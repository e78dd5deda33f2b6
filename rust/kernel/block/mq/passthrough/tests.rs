// SPDX-License-Identifier: GPL-2.0

//! Tests of requests that a driver makes for itself.

#[macros::kunit_tests(rust_block_mq_passthrough)]
mod suite {
    use super::super::{
        super::{
            Blocking,
            CompletingRequest,
            IdleRequest,
            IoCompletionBatch,
            NoTimer,
            Op,
            QueueCounts,
            QueueResult,
            StartedRequest,
            TagSetOptions,
            TimedOutRequest,
            TimeoutAction, //
        },
        *, //
    };
    use crate::{
        block::{
            bio::Transfer,
            gendisk::GenDiskBuilder,
            BlkStatus,
            Sectors, //
        },
        new_spinlock, static_lock_class,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            SpinLock, //
        },
        time::delay::fsleep,
    };

    /// What the driver does with a request.
    #[derive(Clone, Copy)]
    enum Action {
        /// Ends it with a result.
        End(BlkResult),
        /// Rejects it so often for want of something, then ends it.
        Busy(u32),
        /// Rejects it with a status.
        Reject(BlkStatus),
        /// Completes it.
        Complete,
        /// Ends it in a batch.
        Batch,
        /// Requeues it, and ends it the next time.
        Requeue,
        /// Leaves it to the timeout.
        Hang,
        /// Stores whether the callback may wait for I/O, and ends it.
        CheckMayWait,
    }

    /// The driver's data of a request. Before the request ends, `Op::DriverIn` fills the memory
    /// with `byte`, and `Op::DriverOut` adds up the bytes.
    struct Command {
        action: Action,
        op: Option<Op>,
        byte: u8,
        bytes: u32,
        segments: u32,
        sum: u64,
        timeouts: u32,
        error: Result,
    }

    impl Command {
        const NEW: Self = Self {
            action: Action::End(Ok(())),
            op: None,
            byte: 0,
            bytes: 0,
            segments: 0,
            sum: 0,
            timeouts: 0,
            error: Ok(()),
        };

        fn transfer(&mut self, rq: &StartedRequest<Driver>) {
            (self.op, self.bytes) = (Some(rq.op()), rq.bytes());
            match rq.transfer() {
                Transfer::FromDisk(memory) => {
                    for segment in memory {
                        segment.fill(self.byte);
                        self.segments += 1;
                    }
                }
                Transfer::ToDisk(memory) => {
                    for segment in memory {
                        let mut byte = [0];
                        for at in 0..segment.size() {
                            if segment.read(at, &mut byte).is_ok() {
                                self.sum += u64::from(byte[0]);
                            }
                        }
                        self.segments += 1;
                    }
                }
                Transfer::None => (),
            }
        }
    }

    struct Driver;

    /// Counts the calls, and is told of the drop.
    struct Calls {
        calls: Atomic<u32>,
        dropped: Option<Arc<Atomic<u32>>>,
    }

    impl Drop for Calls {
        fn drop(&mut self) {
            if let Some(dropped) = &self.dropped {
                dropped.add(1, Relaxed);
            }
        }
    }

    fn calls() -> Result<Calls> {
        Ok(Calls {
            calls: Atomic::new(0),
            dropped: None,
        })
    }

    #[vtable]
    impl Operations for Driver {
        type Context = Blocking;
        type TagSetData = ();
        type QueueData = Calls;
        type HwData = ();
        type RequestData = SpinLock<Command>;
        type Timer = NoTimer;

        fn init_hw_queue(_: &Calls, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<SpinLock<Command>> {
            new_spinlock!(Command::NEW)
        }

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            rq.queue_data().calls.add(1, Relaxed);
            let action = rq.data().lock().action;
            if let Action::Reject(status) = action {
                return Err(rq.reject(status));
            }
            if let Action::Busy(left) = action {
                rq.data().lock().action = match left.checked_sub(1) {
                    Some(left) => Action::Busy(left),
                    None => Action::End(Ok(())),
                };
                return Err(rq.reject(BlkStatus::RESOURCE));
            }
            let rq = rq.start();
            match action {
                Action::Requeue => {
                    rq.data().lock().action = Action::End(Ok(()));
                    rq.requeue();
                    return Ok(());
                }
                Action::CheckMayWait => rq.data().lock().error = late_drop::check_may_wait(),
                _ => (),
            }
            rq.data().lock().transfer(&rq);
            match action {
                Action::End(result) => rq.end(result),
                Action::Complete => rq.complete(),
                Action::Batch => IoCompletionBatch::new().end(rq, Ok(())),
                Action::Hang => rq.leave_in_flight(),
                _ => rq.end(Ok(())),
            }
            Ok(())
        }

        fn complete(rq: CompletingRequest<Self>) {
            rq.end(Ok(()));
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            rq.data().lock().timeouts += 1;
            match rq.try_take() {
                Ok((rq, done)) => {
                    rq.end(Err(BlkStatus::TIMEOUT));
                    done
                }
                Err(rq) => rq.reset_timer(),
            }
        }
    }

    fn tags() -> Result<Arc<TagSet<Driver>>> {
        TagSet::new(TagSetOptions::default(), Ok(()))
    }

    /// Tags of which one is reserved.
    fn reserved_tags(depth: u32) -> Result<Arc<TagSet<Driver>>> {
        let options = TagSetOptions {
            depth,
            reserved_tags: 1,
            ..TagSetOptions::default()
        };
        TagSet::new(options, Ok(()))
    }

    /// A queue whose buffers need an alignment of 4 bytes.
    fn queue(tags: &Arc<TagSet<Driver>>) -> Result<PassthroughQueue<Driver>> {
        let limits = QueueLimits {
            dma_alignment: 3,
            max_hw_sectors: Sectors::from_mebibytes(4),
            ..QueueLimits::default()
        };
        PassthroughQueue::new(tags.clone(), &limits, None, calls())
    }

    fn request(
        queue: &PassthroughQueue<Driver>,
        op: PassthroughOp,
        action: Action,
    ) -> Result<Passthrough<'_, Driver>> {
        let rq = queue.request(op)?;
        *rq.data().lock() = Command {
            action,
            byte: 0x5a,
            ..Command::NEW
        };
        Ok(rq)
    }

    fn execute(queue: &PassthroughQueue<Driver>, action: Action) -> Result<Executed<'_, Driver>> {
        request(queue, PassthroughOp::In, action)?.execute()
    }

    fn bytes(len: usize) -> Result<KVVec<u8>> {
        let mut bytes = KVVec::with_capacity(len, GFP_KERNEL)?;
        for index in 0..len {
            bytes.push(index as u8, GFP_KERNEL)?;
        }
        Ok(bytes)
    }

    /// The lengths of buffers: aligned, not aligned, longer than a page, and the longest.
    const LENGTHS: [usize; 5] = [4, 7, 3 * PAGE_SIZE + 4, 2 * PAGE_SIZE + 1, 255 * PAGE_SIZE];

    #[test]
    fn the_driver_fills_the_buffer() -> Result {
        let queue = queue(&tags()?)?;
        for len in LENGTHS {
            let rq = request(&queue, PassthroughOp::In, Action::End(Ok(())))?;
            let rq = rq.with_buffer(bytes(len)?)?.execute()?;
            assert_eq!(rq.status(), Ok(()));
            assert!(rq.data().lock().op == Some(Op::DriverIn));
            assert_eq!(rq.data().lock().bytes as usize, len);
            assert_eq!(rq.buffer().map(<[u8]>::len), Some(len));
            let buffer = rq.into_buffer().ok_or(EINVAL)?;
            assert!(buffer.iter().all(|&byte| byte == 0x5a));
        }
        Ok(())
    }

    #[test]
    fn the_driver_reads_the_buffer() -> Result {
        let queue = queue(&tags()?)?;
        for len in LENGTHS {
            let rq = request(&queue, PassthroughOp::Out, Action::Complete)?;
            let buffer = bytes(len)?;
            let sum: u64 = buffer.iter().map(|&byte| u64::from(byte)).sum();
            let rq = rq.with_buffer(buffer)?.execute()?;
            assert_eq!(rq.status(), Ok(()));
            let command = rq.data().lock();
            assert!(command.op == Some(Op::DriverOut));
            assert_eq!(command.sum, sum);
        }
        Ok(())
    }

    #[test]
    fn a_request_needs_no_buffer() -> Result {
        let queue = queue(&tags()?)?;
        for op in [PassthroughOp::In, PassthroughOp::Out] {
            let rq = request(&queue, op, Action::End(Ok(())))?.execute()?;
            assert_eq!(rq.status(), Ok(()));
            assert_eq!(rq.buffer(), None);
            let command = rq.data().lock();
            assert_eq!((command.bytes, command.segments), (0, 0));
        }
        Ok(())
    }

    #[test]
    fn buffers_that_do_not_fit_are_refused() -> Result {
        let queue = queue(&tags()?)?;
        let map = |len| -> Result {
            let buffer = KVVec::from_elem(0, len, GFP_KERNEL)?;
            drop(queue.request(PassthroughOp::In)?.with_buffer(buffer)?);
            Ok(())
        };
        assert_eq!(map(0), Err(EINVAL));
        // More than fits into a bio.
        assert_eq!(map(257 * PAGE_SIZE), Err(EINVAL));
        assert_eq!(map((256 * PAGE_SIZE) | 1), Err(EINVAL));

        let twice = queue.request(PassthroughOp::In)?.with_buffer(bytes(8)?)?;
        assert!(twice.with_buffer(bytes(8)?).is_err());

        let limits = QueueLimits {
            max_hw_sectors: Sectors::from_bytes(PAGE_SIZE as u64),
            ..QueueLimits::default()
        };
        let small = PassthroughQueue::new(queue.tag_set().clone(), &limits, None, calls())?;
        let rq = small.request(PassthroughOp::Out)?;
        assert!(rq.with_buffer(bytes(PAGE_SIZE + 512)?).is_err());
        Ok(())
    }

    #[test]
    fn the_status_is_that_of_the_driver() -> Result {
        let queue = queue(&tags()?)?;
        for status in [BlkStatus::INVAL, BlkStatus::MEDIUM, BlkStatus::RESOURCE] {
            let rq = execute(&queue, Action::End(Err(status)))?;
            assert_eq!(rq.status(), Err(status));
        }
        let rejected = execute(&queue, Action::Reject(BlkStatus::OFFLINE))?;
        assert_eq!(rejected.status(), Err(BlkStatus::OFFLINE));
        drop(rejected);
        for action in [Action::Complete, Action::Batch, Action::Requeue] {
            assert_eq!(execute(&queue, action)?.status(), Ok(()));
        }
        // The requeued request came twice.
        assert_eq!(queue.queue_data().calls.load(Relaxed), 8);
        Ok(())
    }

    #[test]
    fn the_buffer_comes_back_however_the_request_ends() -> Result {
        let queue = queue(&tags()?)?;
        let failed = Err(BlkStatus::TARGET);
        for action in [Action::Batch, Action::Complete, Action::End(failed)] {
            let rq = request(&queue, PassthroughOp::In, action)?;
            let rq = rq.with_buffer(bytes(513)?)?.execute()?;
            let last = rq.buffer().and_then(|buffer| buffer.last().copied());
            assert_eq!(last, Some(0x5a));
        }
        Ok(())
    }

    #[test]
    fn a_timeout_ends_a_request() -> Result {
        let queue = queue(&tags()?)?;
        let mut rq = request(&queue, PassthroughOp::In, Action::Hang)?;
        rq.set_timeout(Delta::from_millis(20));
        let rq = rq.with_buffer(bytes(16)?)?.execute()?;
        assert_eq!(rq.status(), Err(BlkStatus::TIMEOUT));
        assert_eq!(rq.data().lock().timeouts, 1);
        assert!(rq.into_buffer().is_some());
        Ok(())
    }

    #[test]
    fn a_request_that_has_ended_does_not_time_out() -> Result {
        let queue = queue(&tags()?)?;
        let mut rq = request(&queue, PassthroughOp::In, Action::End(Ok(())))?;
        rq.set_timeout(Delta::from_millis(20));
        let rq = rq.execute()?;
        // C looks for requests that timed out whenever the time of any is over.
        let mut other = request(&queue, PassthroughOp::In, Action::Hang)?;
        other.set_timeout(Delta::from_millis(20));
        assert_eq!(other.execute()?.status(), Err(BlkStatus::TIMEOUT));
        fsleep(Delta::from_millis(50));
        assert_eq!(rq.data().lock().timeouts, 0);
        Ok(())
    }

    #[test]
    fn what_is_not_executed_is_freed() -> Result {
        let tags = tags()?;
        let queue = queue(&tags)?;
        for _ in 0..2 * tags.depth() {
            drop(queue.request(PassthroughOp::In)?);
            drop(queue.request(PassthroughOp::Out)?.with_buffer(bytes(8)?)?);
            drop(queue.request(PassthroughOp::In)?.with_buffer(bytes(513)?)?);
        }
        assert_eq!(queue.queue_data().calls.load(Relaxed), 0);
        drop(queue);
        Ok(())
    }

    #[test]
    fn without_a_tag_a_request_is_refused_or_waits() -> Result {
        let options = TagSetOptions {
            depth: 1,
            ..TagSetOptions::default()
        };
        let queue = queue(&TagSet::new(options, Ok(()))?)?;
        let first = queue.try_request(PassthroughOp::In)?;
        assert_eq!(queue.try_request(PassthroughOp::In).err(), Some(EAGAIN));
        let first = first.execute()?;
        assert_eq!(queue.try_request(PassthroughOp::In).err(), Some(EAGAIN));
        drop(first);
        assert!(queue.try_request(PassthroughOp::In).is_ok());
        Ok(())
    }

    #[test]
    fn a_reserved_tag_is_had_when_the_others_are_not() -> Result {
        let queue = queue(&reserved_tags(3)?)?;
        let first = queue.try_request(PassthroughOp::In)?;
        let second = queue.try_request(PassthroughOp::In)?;
        let mut ordinary = [first.tag(), second.tag()];
        ordinary.sort_unstable();
        assert_eq!(ordinary, [1, 2]);
        assert_eq!(queue.try_request(PassthroughOp::In).err(), Some(EAGAIN));
        for may_wait in [true, false] {
            let rq = if may_wait {
                queue.reserved_request(PassthroughOp::In)?
            } else {
                queue.try_reserved_request(PassthroughOp::In)?
            };
            assert_eq!(rq.tag(), 0);
            let another = queue.try_reserved_request(PassthroughOp::In);
            assert_eq!(another.err(), Some(EAGAIN));
            *rq.data().lock() = Command::NEW;
            assert_eq!(rq.execute()?.status(), Ok(()));
        }
        // Ordinary tags are not used in their place.
        let reserved = queue.try_reserved_request(PassthroughOp::In)?;
        drop((first, second));
        let another = queue.try_reserved_request(PassthroughOp::In);
        assert_eq!(another.err(), Some(EAGAIN));
        drop(reserved);
        Ok(())
    }

    #[test]
    fn a_request_with_a_reserved_tag_is_dispatched_first() -> Result {
        const REJECTIONS: u32 = 100;
        let queue = queue(&reserved_tags(2)?)?;
        let busy = request(&queue, PassthroughOp::In, Action::Busy(REJECTIONS))?;
        busy.execute_nowait()?;
        while queue.queue_data().calls.load(Relaxed) == 0 {
            fsleep(Delta::from_millis(1));
        }
        let rq = queue.reserved_request(PassthroughOp::In)?;
        *rq.data().lock() = Command::NEW;
        assert_eq!(rq.execute()?.status(), Ok(()));
        assert!(queue.queue_data().calls.load(Relaxed) < REJECTIONS);
        Ok(())
    }

    #[test]
    fn a_request_with_a_reserved_tag_ends_with_others() -> Result {
        let queue = queue(&reserved_tags(2)?)?;
        for _ in 0..3 {
            let mut rq = queue.try_reserved_request(PassthroughOp::In);
            // The one before has ended soon.
            for _ in 0..1000 {
                if rq.is_ok() {
                    break;
                }
                fsleep(Delta::from_millis(1));
                rq = queue.try_reserved_request(PassthroughOp::In);
            }
            let rq = rq?;
            *rq.data().lock() = Command {
                action: Action::Batch,
                ..Command::NEW
            };
            rq.execute_nowait()?;
        }
        Ok(())
    }

    #[test]
    fn a_request_with_a_reserved_tag_times_out() -> Result {
        let queue = queue(&reserved_tags(2)?)?;
        let mut rq = queue.reserved_request(PassthroughOp::In)?;
        *rq.data().lock() = Command {
            action: Action::Hang,
            ..Command::NEW
        };
        rq.set_timeout(Delta::from_millis(20));
        assert_eq!(rq.execute()?.status(), Err(BlkStatus::TIMEOUT));
        Ok(())
    }

    #[test]
    fn reserved_tags_are_those_of_one_queue() -> Result {
        let tags = reserved_tags(3)?;
        let first = queue(&tags)?;
        assert_eq!(queue(&tags).err(), Some(EBUSY));
        let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
            .build(c"rust_reserved", calls());
        assert_eq!(disk.err(), Some(EBUSY));
        drop(first);
        // Without a count of preemption, a work item drops the queue.
        let mut disk = Err(EBUSY);
        for _ in 0..1000 {
            disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
                .build(c"rust_reserved", calls());
            if !matches!(disk, Err(EBUSY)) {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        let disk = disk?;
        assert_eq!(queue(&tags).err(), Some(EBUSY));
        drop(disk);
        let mut second = queue(&tags);
        for _ in 0..1000 {
            if !matches!(second, Err(EBUSY)) {
                break;
            }
            fsleep(Delta::from_millis(1));
            second = queue(&tags);
        }
        second.map(drop)
    }

    #[test]
    fn without_reserved_tags_there_are_no_such_requests() -> Result {
        let queue = queue(&tags()?)?;
        let rq = queue.reserved_request(PassthroughOp::In);
        assert_eq!(rq.err(), Some(EINVAL));
        let rq = queue.try_reserved_request(PassthroughOp::In);
        assert_eq!(rq.err(), Some(EINVAL));
        Ok(())
    }

    #[test]
    fn a_task_that_io_may_wait_for_makes_no_request() -> Result {
        let tags = tags()?;
        let queue = queue(&tags)?;
        memalloc_noio(|| {
            assert_eq!(queue.request(PassthroughOp::In).err(), Some(EDEADLK));
            let rq = queue.try_request(PassthroughOp::In);
            assert_eq!(rq.and_then(|rq| rq.execute()).err(), Some(EDEADLK));
            let limits = QueueLimits::default();
            let other = PassthroughQueue::new(tags.clone(), &limits, None, calls());
            assert_eq!(other.err(), Some(EDEADLK));
        });
        let rq = execute(&queue, Action::CheckMayWait)?;
        assert_eq!(rq.data().lock().error, Err(EDEADLK));
        Ok(())
    }

    #[test]
    fn queues_and_a_disk_share_a_tag_set() -> Result {
        let tags = tags()?;
        let dropped = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let first = queue(&tags)?;
        let data = Calls {
            calls: Atomic::new(0),
            dropped: Some(dropped.clone()),
        };
        let second = PassthroughQueue::new(tags.clone(), &QueueLimits::default(), None, Ok(data))?;
        let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_passthrough", calls())?
            .add()?;
        {
            let a = request(&first, PassthroughOp::In, Action::End(Ok(())))?;
            let b = request(&second, PassthroughOp::In, Action::End(Ok(())))?;
            assert_ne!(a.tag(), b.tag());
            assert_eq!(b.execute()?.status(), Ok(()));
            assert_eq!(a.execute()?.status(), Ok(()));
        }
        assert_eq!(first.queue_data().calls.load(Relaxed), 1);
        assert_eq!(second.queue_data().calls.load(Relaxed), 1);
        drop(second);
        // Otherwise a worker drops it a little later.
        assert!(dropped.load(Relaxed) == 1 || !cfg!(CONFIG_PREEMPT_COUNT));
        assert_eq!(execute(&first, Action::Batch)?.status(), Ok(()));
        drop(first);
        drop(disk);
        // The tag set can be used again.
        assert_eq!(execute(&queue(&tags)?, Action::Complete)?.status(), Ok(()));
        Ok(())
    }

    #[test]
    fn the_number_of_hardware_queues_changes() -> Result {
        let counts = |read| QueueCounts {
            read,
            ..QueueCounts::default()
        };
        let options = TagSetOptions {
            queues: counts(1),
            ..TagSetOptions::default()
        };
        let tags = TagSet::new(options, Ok(()))?;
        let queue = queue(&tags)?;
        for read in [0, 1, 0] {
            tags.set_queue_counts(counts(read))?;
            assert_eq!(tags.queue_counts().read, read);
            assert_eq!(execute(&queue, Action::Complete)?.status(), Ok(()));
        }
        Ok(())
    }

    #[test]
    fn a_queue_is_dropped_where_the_task_cannot_wait() -> Result {
        let tags = tags()?;
        let dropped = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let data = Calls {
            calls: Atomic::new(0),
            dropped: Some(dropped.clone()),
        };
        let queue = PassthroughQueue::new(tags, &QueueLimits::default(), None, Ok(data))?;
        assert_eq!(execute(&queue, Action::End(Ok(())))?.status(), Ok(()));
        memalloc_noio(|| drop(queue));
        for _ in 0..1000 {
            if dropped.load(Relaxed) == 1 {
                return Ok(());
            }
            fsleep(Delta::from_millis(1));
        }
        Err(ETIMEDOUT)
    }

    #[test]
    fn invalid_limits_are_refused() -> Result {
        let tags = tags()?;
        let zoned = QueueLimits {
            zoned: true,
            chunk_sectors: Sectors::from_mebibytes(1),
            ..QueueLimits::default()
        };
        assert!(PassthroughQueue::new(tags.clone(), &zoned, None, calls()).is_err());
        let alignment = QueueLimits {
            logical_block_size: 513,
            ..QueueLimits::default()
        };
        assert!(PassthroughQueue::new(tags.clone(), &alignment, None, calls()).is_err());
        let failing =
            PassthroughQueue::new(tags, &QueueLimits::default(), None, Err::<Calls, _>(EIO));
        assert_eq!(failing.err(), Some(EIO));
        Ok(())
    }
}
