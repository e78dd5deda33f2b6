// SPDX-License-Identifier: GPL-2.0

//! The path of a request: from the block layer to the controller, then back.

use super::{
    command::{
        deallocate_range,
        Blocks,
        IoCommand, //
    },
    completion_queue::Command,
    link::Link,
    params,
    prp::{
        Builder,
        List,
        Prps,
        LIST_ENTRIES,
        PAGE_SIZE, //
    },
    queue_entry::{
        CommandStatus,
        Completion,
        Failure, //
    },
    queue_pair::{
        Gate,
        QueuePair,
        Submission, //
    }, //
};
use kernel::{
    block::{
        mq::{
            HwQueue,
            IdleRequest,
            InFlight,
            IoCompletionBatch,
            MappedRequest,
            NoTimer,
            NonBlocking,
            Op,
            Operations,
            PlugList,
            QueueResult,
            RejectedRequest,
            Request,
            StartedRequest,
            TimedOutRequest,
            TimeoutAction, //
        },
        BlkStatus, //
    },
    dma::pool::{
        DmaBlock,
        DmaMemory,
        DmaPool, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu,
        Arc, //
    },
    time::Delta, //
};

/// The entries of a short list, which describes up to 132 KiB.
const SHORT_ENTRIES: usize = 32;

/// The memory for lists of pages.
pub(crate) struct Pools {
    pub(crate) short: DmaPool<u64, SHORT_ENTRIES>,
    pub(crate) long: DmaPool<u64, LIST_ENTRIES>,
}

/// What all namespaces of a controller share.
pub(crate) struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) pairs: KVec<Arc<QueuePair<InFlightIo>>>,
    pub(crate) pools: Pools,
    /// How long to wait before a retry, for each value of the status field CRD but 0.
    pub(crate) retry_delays: [Delta; 3],
}

/// The data of a disk.
pub(crate) struct Namespace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) nsid: u32,
    /// The size of a block as a power of two, in sectors.
    pub(crate) block_shift: u32,
    /// Whether Write Zeroes may deallocate blocks, as these read as zeros then.
    pub(crate) zeroes_may_deallocate: bool,
}

impl Namespace {
    /// Returns the blocks that a request is about.
    #[inline]
    fn blocks(&self, rq: &Request<Io>) -> Blocks {
        Blocks {
            first: rq.sector().0.wrapping_shr(self.block_shift),
            // A request has fewer sectors than 32 bits can count.
            count: (rq.sectors().0 as u32).wrapping_shr(self.block_shift),
        }
    }

    /// Returns the command for a request; [`None`] for an operation that does not exist.
    #[inline]
    fn command(&self, rq: &Request<Io>) -> Option<IoCommand> {
        let blocks = self.blocks(rq);
        Some(match rq.op() {
            Op::Read => IoCommand::read(blocks),
            Op::Write => IoCommand::write(blocks, rq.is_fua()),
            Op::Flush => IoCommand::FLUSH,
            Op::Discard => IoCommand::DEALLOCATE,
            Op::WriteZeroes => {
                let keep = rq.is_no_unmap() || !self.zeroes_may_deallocate;
                IoCommand::write_zeroes(blocks, keep)
            }
            _ => return None,
        })
    }
}

/// The memory of the controller that a command needs beside the data.
enum Extra {
    None,
    Short(DmaBlock<u64, SHORT_ENTRIES>),
    Long(DmaBlock<u64, LIST_ENTRIES>),
}

impl Extra {
    #[inline]
    fn into_memory(self) -> Option<DmaMemory> {
        match self {
            Self::None => None,
            Self::Short(block) => Some(block.into_memory()),
            Self::Long(block) => Some(block.into_memory()),
        }
    }
}

/// A list of pages that is taken from a pool when it is needed.
struct PooledList<'a> {
    pools: &'a Pools,
    bytes: u32,
    extra: Extra,
}

impl List for PooledList<'_> {
    type Error = BlkStatus;

    fn begin(&mut self) -> Result<u64, BlkStatus> {
        // One page more, as the first and the last may be parts of pages.
        let pages = u64::from(self.bytes).div_ceil(PAGE_SIZE) + 1;
        let (extra, address) = if pages <= SHORT_ENTRIES as u64 + 1 {
            let block = self.pools.short.take().ok_or(BlkStatus::RESOURCE)?;
            let address = block.address();
            (Extra::Short(block), address)
        } else {
            let block = self.pools.long.take().ok_or(BlkStatus::RESOURCE)?;
            let address = block.address();
            (Extra::Long(block), address)
        };
        self.extra = extra;
        Ok(address)
    }

    #[inline]
    fn set(&mut self, index: usize, page: u64) -> Result<(), BlkStatus> {
        let set = match &mut self.extra {
            Extra::None => Err(EINVAL),
            Extra::Short(block) => block.write(index, page.to_le()),
            Extra::Long(block) => block.write(index, page.to_le()),
        };
        set.map_err(|_| BlkStatus::IOERR)
    }

    #[inline]
    fn set_all(&mut self, index: usize, page: u64, count: usize) -> Result<(), BlkStatus> {
        let pages = (0..count as u64).map(|nth| page.wrapping_add(nth * PAGE_SIZE).to_le());
        let set = match &mut self.extra {
            Extra::None => Err(EINVAL),
            Extra::Short(block) => block.write_all(index, pages),
            Extra::Long(block) => block.write_all(index, pages),
        };
        set.map_err(|_| BlkStatus::IOERR)
    }

    fn unfit(&self) -> BlkStatus {
        BlkStatus::IOERR
    }
}

/// A command that the controller has.
pub(crate) struct InFlightIo {
    rq: MappedRequest<Io>,
    /// Kept until the command has completed.
    list: Option<DmaMemory>,
}

impl InFlight for InFlightIo {
    type Driver = Io;

    #[inline]
    fn request(&self) -> &Request<Io> {
        &self.rq
    }
}

impl Command for InFlightIo {
    #[inline(always)]
    fn complete(
        self,
        completion: Completion,
        guard: &rcu::Guard,
        batch: &mut IoCompletionBatch<'_, Io>,
    ) {
        let Self { rq, list } = self;
        let rq = rq.unmap(guard);
        if completion.status.is_success() {
            if rq.data().load(Relaxed) != 0 {
                rq.data().store(0, Relaxed);
            }
            batch.end(rq, Ok(()));
        } else {
            failed(rq, completion.status);
        }
        drop(list);
    }

    #[cold]
    fn cancel(self, guard: &rcu::Guard, again: bool) {
        let rq = self.rq.unmap(guard);
        if again && count_retry(&rq) {
            rq.requeue();
        } else {
            rq.data().store(0, Relaxed);
            rq.end(Err(BlkStatus::IOERR));
        }
    }
}

/// Counts that a request is sent again; false if that has happened too often.
fn count_retry(rq: &Request<Io>) -> bool {
    let retries = rq.data().load(Relaxed);
    rq.data().store(retries + 1, Relaxed);
    retries < params::max_retries()
}

/// Ends a request that has failed, or sends it again.
#[cold]
fn failed(rq: StartedRequest<Io>, status: CommandStatus) {
    let Some(failure) = status.failure() else {
        return rq.end(Ok(()));
    };
    if !status.is_final() && count_retry(&rq) {
        let delays = rq.queue_data().shared.retry_delays;
        return match status
            .retry_delay()
            .checked_sub(1)
            .and_then(|at| delays.get(at))
        {
            Some(delay) if !delay.is_zero() => rq.requeue_after(*delay),
            _ => rq.requeue(),
        };
    }
    rq.data().store(0, Relaxed);
    log_failure(&rq, status);
    rq.end(Err(match failure {
        Failure::NotSupported => BlkStatus::NOTSUPP,
        Failure::Target => BlkStatus::TARGET,
        Failure::NoSpace => BlkStatus::NOSPC,
        Failure::Reserved => BlkStatus::RESV_CONFLICT,
        Failure::Medium => BlkStatus::MEDIUM,
        Failure::Protection => BlkStatus::PROTECTION,
        Failure::Transport => BlkStatus::TRANSPORT,
        Failure::Other => BlkStatus::IOERR,
    }));
}

/// Logs that a command has failed.
fn log_failure(rq: &Request<Io>, status: CommandStatus) {
    dev_err!(
        rq.queue_data().shared.link.registers.device(),
        "namespace {}: {:?} of {} sectors at {} failed: status {:#x}\n",
        rq.queue_data().nsid,
        rq.op(),
        rq.sectors().0,
        rq.sector().0,
        status.code()
    );
}

/// The driver of the I/O queues.
pub(crate) struct Io;

/// Maps the memory of a request, starts it, and puts its command into the submission queue; or
/// rejects the request. The block layer sends a request again for which there is no memory now.
#[inline(always)]
fn put<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Option<Submission<InFlightIo>>,
    hw: HwQueue<'q, Io>,
    guard: &rcu::Guard,
) -> Result<(), RejectedRequest<'q, Io>> {
    let Some(room) = submission.as_mut().and_then(|queue| queue.room(&rq)) else {
        return Err(turn_away(rq, hw.data()));
    };
    let namespace = hw.queue_data();
    let Some(command) = namespace.command(&rq) else {
        return Err(rq.reject(BlkStatus::NOTSUPP));
    };
    let mut memory = Builder::new(PooledList {
        pools: &namespace.shared.pools,
        bytes: rq.bytes(),
        extra: Extra::None,
    });
    if command == IoCommand::DEALLOCATE && memory.add_range(namespace.blocks(&rq)).is_err() {
        return Err(rq.reject(BlkStatus::RESOURCE));
    }
    let rq = rq
        .map_and_start(guard, |address, len| memory.add(address, len))
        .map_err(|(rq, status)| rq.reject(status))?;
    let (prps, list) = memory.finish();
    let in_flight = InFlightIo {
        rq,
        list: list.extra.into_memory(),
    };
    room.put(in_flight, |cid| command.entry(cid, namespace.nsid, prps));
    Ok(())
}

/// Puts the commands of a request, and of those behind it that have the same queue pair, into the
/// submission queue, then tells the controller.
///
/// Returns the first request that has another queue pair, or the one that is rejected. Those behind
/// are still in the list.
#[inline]
fn put_all<'q>(
    mut rq: IdleRequest<'q, Io>,
    rqs: &mut PlugList<'q, Io>,
    guard: &rcu::Guard,
) -> Result<Option<IdleRequest<'q, Io>>, RejectedRequest<'q, Io>> {
    let mut hw = rq.hw_queue();
    let pair = hw.data();
    let mut submission = pair.submission();
    let result = loop {
        if let Err(rejected) = put(rq, &mut submission, hw, guard) {
            break Err(rejected);
        }
        let Some(next) = rqs.pop() else {
            break Ok(None);
        };
        hw = next.hw_queue();
        if !Arc::ptr_eq(hw.data(), pair) {
            break Ok(Some(next));
        }
        rq = next;
    };
    if let Some(submission) = &mut *submission {
        submission.announce(guard);
    }
    result
}

/// Rejects a request for a queue pair that is not open.
#[cold]
fn turn_away<'q>(rq: IdleRequest<'q, Io>, pair: &QueuePair<InFlightIo>) -> RejectedRequest<'q, Io> {
    rq.reject(if pair.gate() == Gate::Dead {
        BlkStatus::IOERR
    } else {
        BlkStatus::RESOURCE
    })
}

impl Builder<PooledList<'_>> {
    /// Adds memory that says which blocks to deallocate. It has the size of a page: some
    /// controllers read all of the 256 ranges that may be in it.
    #[cold]
    fn add_range(&mut self, blocks: Blocks) -> Result {
        let list = self.list_mut();
        let mut block = list.pools.long.take().ok_or(ENOMEM)?;
        for (index, word) in deallocate_range(blocks).into_iter().enumerate() {
            block.write(index, word.to_le())?;
        }
        let address = block.address();
        list.extra = Extra::Long(block);
        self.add(address, PAGE_SIZE as u32).map_err(|_| EIO)
    }
}

#[vtable]
impl Operations for Io {
    type Context = NonBlocking;
    type TagSetData = Arc<Shared>;
    type QueueData = Namespace;
    type HwData = Arc<QueuePair<InFlightIo>>;
    /// How often the request was sent again.
    type RequestData = Atomic<u32>;
    type Timer = NoTimer;

    fn init_hw_queue(
        _: &Namespace,
        shared: &Arc<Shared>,
        index: u32,
    ) -> impl PinInit<Arc<QueuePair<InFlightIo>>, Error> {
        Ok(shared.pairs.get(index as usize).ok_or(EINVAL)?.clone())
    }

    fn init_request(_: &Arc<Shared>) -> impl PinInit<Atomic<u32>> {
        Atomic::new(0)
    }

    #[inline]
    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, last: bool) -> QueueResult<'q, Self> {
        let (hw, context) = (rq.hw_queue(), rq.context());
        let mut submission = hw.data().submission();
        put(rq, &mut submission, hw, context.rcu_guard())?;
        if let (Some(submission), true) = (&mut *submission, last) {
            submission.announce(context.rcu_guard());
        }
        Ok(())
    }

    fn commit_rqs(hw: HwQueue<'_, Self>) {
        hw.data().announce(&rcu::read_lock());
    }

    fn queue_rqs(rqs: &mut PlugList<'_, Self>) {
        let mut next = rqs.pop();
        while let Some(rq) = next {
            let context = rq.context();
            next = match put_all(rq, rqs, context.rcu_guard()) {
                Ok(next) => next,
                Err(rejected) => {
                    // Those in the list are queued one by one.
                    rqs.push_back(rejected);
                    break;
                }
            };
        }
    }

    fn poll(hw: HwQueue<'_, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        hw.data().poll(batch)
    }

    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let pair = rq.hw_queue().data();
        pair.look();
        let link = &rq.hw_queue().queue_data().shared.link;
        link.timed_out(|| pair.contains(&rq));
        // It has ended, or is about to.
        rq.reset_timer()
    }
}
