// SPDX-License-Identifier: GPL-2.0

//! The path of a request: from the block layer to the controller, then back.

use super::{
    admin::AdminQueue,
    attempts::Attempts,
    command::{
        deallocate_range,
        Blocks,
        IoCommand, //
    },
    completion_queue::Command,
    data_pointer::DataPointer,
    identify::{
        descriptors::Identifiers,
        namespace::AtomicWrites, //
    },
    link::{
        Link,
        State, //
    },
    lists::{
        self,
        Pools, //
    },
    params,
    prp::{
        self,
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
    },
    sgl,
    user_command::{
        Moves,
        Parts,
        UserCommand, //
    }, //
};
use core::ops::Deref;
use kernel::{
    block::{
        mq::{
            CompletingRequest,
            DiskAccess,
            HwQueue,
            IdleRequest,
            InFlight,
            IoCompletionBatch,
            IoctlCaller,
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
        BlkStatus,
        Sector,
        Sectors, //
    },
    dma::pool::DmaMemory,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu,
        static_lock_class,
        Arc,
        SpinLockIrq, //
    },
    time::Delta, //
};

/// Handles the ioctls of the namespaces of a controller.
pub(crate) trait Ioctls: Send + Sync {
    /// Returns what the ioctl returns, which is not negative.
    fn ioctl(
        &self,
        disk: &DiskAccess<'_, Io>,
        caller: IoctlCaller,
        cmd: u32,
        arg: usize,
    ) -> Result<u32>;
}

/// What all namespaces of a controller share.
pub(crate) struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) admin: Arc<AdminQueue>,
    pub(crate) ioctls: Arc<dyn Ioctls>,
    pub(crate) pairs: KVec<Arc<QueuePair<InFlightIo>>>,
    pub(crate) pools: Pools,
    /// Whether commands may have a scatter-gather list. A reset may change it, while no request is
    /// dispatched.
    pub(crate) has_sgl: Atomic<bool>,
    /// How long to wait before a retry, for each value of the status field CRD but 0, in
    /// milliseconds. A reset may change it, too.
    pub(crate) retry_delays: [Atomic<u32>; 3],
}

/// The data of a disk.
pub(crate) struct Namespace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) nsid: u32,
    /// That number, which commands have; or 0, which is that of no namespace.
    pub(crate) addressed: Atomic<u32>,
    /// The size of a block as a power of two, in sectors.
    pub(crate) block_shift: u32,
    /// What is written atomically, if anything.
    pub(crate) atomic_writes: Option<AtomicWrites>,
    /// Whether Write Zeroes may deallocate blocks, as these read as zeros then.
    pub(crate) zeroes_may_deallocate: bool,
    pub(crate) ids: Identifiers,
    /// The name by which it is known wherever it is.
    pub(crate) wwid: CString,
}

impl Shared {
    /// Returns whether commands may have a scatter-gather list.
    #[inline]
    fn has_sgl(&self) -> bool {
        self.has_sgl.load(Relaxed)
    }

    /// Returns how long to wait before a retry after this status, if the controller says so.
    fn retry_delay(&self, status: CommandStatus) -> Option<Delta> {
        let at = status.retry_delay().checked_sub(1)?;
        let milliseconds = self.retry_delays.get(at)?.load(Relaxed);
        (milliseconds > 0).then(|| Delta::from_millis(milliseconds.into()))
    }
}

impl Namespace {
    /// Has the controller refuse all commands from now on: they are made for blocks that the
    /// namespace does not have any more, and would move more than their memory.
    pub(crate) fn forget(&self) {
        self.addressed.store(0, Relaxed);
    }

    /// Returns the number of the namespace for a command.
    #[inline]
    fn addressed(&self) -> u32 {
        self.addressed.load(Relaxed)
    }

    /// Returns the blocks that consist of these sectors.
    #[inline]
    fn blocks(&self, first: Sector, len: Sectors) -> Blocks {
        Blocks {
            first: first.0.wrapping_shr(self.block_shift),
            // A request has fewer sectors than 32 bits can count.
            count: (len.0 as u32).wrapping_shr(self.block_shift),
        }
    }
}

/// The data of a request: what was tried for it, and the command if a user has made it.
#[pin_data]
pub(crate) struct IoData {
    attempts: Attempts,
    #[pin]
    pub(crate) user: SpinLockIrq<Exchange>,
}

impl Deref for IoData {
    type Target = Attempts;

    #[inline]
    fn deref(&self) -> &Attempts {
        &self.attempts
    }
}

/// A command that a user has made, and what the controller answers, which an interrupt handler
/// writes.
#[derive(Default)]
pub(crate) struct Exchange {
    pub(crate) command: Option<UserCommand>,
    pub(crate) completion: Option<Completion>,
    /// The controller was stopped.
    pub(crate) is_cancelled: bool,
    /// How long the command may take.
    time: Parts,
    /// What is left of that while the controller has the command; none otherwise, so that this says
    /// nothing of the next request that has the tag.
    left: Parts,
}

impl Exchange {
    /// Begins with a command that its user gives that time.
    pub(crate) fn new(command: UserCommand, time: Parts) -> Self {
        Self {
            command: Some(command),
            time,
            ..Self::default()
        }
    }
}

/// Returns whether the command of a request is that of a user.
#[inline]
fn is_of_user(rq: &Request<Io>) -> bool {
    matches!(rq.op(), Op::DriverIn | Op::DriverOut)
}

/// A command that the controller has.
pub(crate) struct InFlightIo {
    rq: MappedRequest<Io>,
    /// Kept until the command has completed.
    list: Option<DmaMemory>,
}

/// Frees a list. Not inlined: what most requests do not need would take their registers.
#[inline(never)]
fn free(list: DmaMemory) {
    drop(list);
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
        // A request that waits for one is sent when this request ends.
        if let Some(list) = list {
            free(list);
        }
        // Nearly all succeed, and were not tried before.
        if completion.status().is_success() && rq.data().is_clear() {
            if let Some(rq) = rq.complete_remote() {
                batch.end(rq, Ok(()));
            }
        } else {
            finish(rq, completion);
        }
    }

    #[cold]
    fn cancel(self, guard: &rcu::Guard, again: bool) {
        let rq = self.rq.unmap(guard);
        if is_of_user(&rq) {
            let mut exchange = rq.data().user.lock();
            exchange.is_cancelled = true;
            exchange.left = Parts::default();
            drop(exchange);
            rq.data().clear();
            rq.end(Err(BlkStatus::IOERR));
        } else if again && count_retry(&rq) {
            rq.requeue();
        } else {
            rq.data().clear();
            rq.end(Err(BlkStatus::IOERR));
        }
    }
}

/// Ends a request that is that of a user, was tried before, or has failed; or sends it again.
#[cold]
fn finish(rq: StartedRequest<Io>, completion: Completion) {
    if is_of_user(&rq) {
        answer(rq, completion);
    } else if completion.status().is_success() {
        rq.data().clear();
        rq.end(Ok(()));
    } else {
        failed(rq, completion.status());
    }
}

/// Ends a request of a user, who gets the status. It is not sent again.
#[cold]
fn answer(rq: StartedRequest<Io>, completion: Completion) {
    let mut exchange = rq.data().user.lock();
    exchange.completion = Some(completion);
    exchange.left = Parts::default();
    drop(exchange);
    rq.data().clear();
    rq.end(Ok(()));
}

/// Counts that a request is sent again; false if that has happened too often, or if its submitter
/// does not want that.
fn count_retry(rq: &Request<Io>) -> bool {
    !rq.is_failfast() && rq.data().count_retry(params::max_retries())
}

/// Ends a request that has failed, or sends it again.
#[cold]
fn failed(rq: StartedRequest<Io>, status: CommandStatus) {
    let Some(failure) = status.failure() else {
        return rq.end(Ok(()));
    };
    if rq.queue_data().addressed() == 0 {
        // It was not sent to a namespace, as that has changed.
        rq.data().clear();
        return rq.end(Err(BlkStatus::IOERR));
    }
    if !status.is_final() && count_retry(&rq) {
        return match rq.queue_data().shared.retry_delay(status) {
            Some(delay) => rq.requeue_after(delay),
            None => rq.requeue(),
        };
    }
    rq.data().clear();
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
    if !rq.queue_data().shared.link.may_log() {
        return;
    }
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
    submission: &mut Submission<InFlightIo>,
    hw: HwQueue<'q, Io>,
    guard: &rcu::Guard,
) -> Result<(), RejectedRequest<'q, Io>> {
    let namespace = hw.queue_data();
    let blocks = || namespace.blocks(rq.sector(), rq.sectors());
    let command = match rq.op() {
        Op::Read => IoCommand::read(blocks()),
        Op::Write if rq.is_atomic() => return put_atomic(rq, submission, hw, guard),
        Op::Write => IoCommand::write(blocks(), rq.is_fua()),
        Op::Flush => return put_without_memory(rq, submission, IoCommand::FLUSH, hw),
        Op::WriteZeroes => return put_write_zeroes(rq, submission, hw),
        Op::Discard => return put_discard(rq, submission, hw),
        Op::DriverIn | Op::DriverOut => return put_of_user(rq, submission, hw, guard),
        _ => return Err(reject(rq, BlkStatus::NOTSUPP)),
    };
    let can_have_block = || namespace.shared.has_sgl() && params::sgl_threshold() != 0;
    let needs_list =
        rq.nr_phys_segments() != 1 || u64::from(rq.bytes()) > PAGE_SIZE && !can_have_block();
    if needs_list {
        return put_with_list(rq, submission, command, hw, guard);
    }
    let Some(room) = submission.room(&rq) else {
        return Err(turn_away(rq, hw.data()));
    };
    let mapped = rq.map_single_and_start(guard, |address, len| {
        Ok(prp::without_list(address, len).unwrap_or_else(|| sgl::without_list(address, len)))
    });
    let (rq, data) = match mapped {
        Ok(mapped) => mapped,
        Err((rq, Some(status))) => return Err(reject(rq, status)),
        Err((rq, None)) => return put_with_list(rq, submission, command, hw, guard),
    };
    room.put(InFlightIo { rq, list: None }, |cid| {
        command.entry(cid, namespace.addressed(), data)
    });
    Ok(())
}

/// Puts a command that has no memory into the queue.
#[inline(always)]
fn put_without_memory<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Submission<InFlightIo>,
    command: IoCommand,
    hw: HwQueue<'q, Io>,
) -> Result<(), RejectedRequest<'q, Io>> {
    let Some(room) = submission.room(&rq) else {
        return Err(turn_away(rq, hw.data()));
    };
    let rq = rq.start().map_nothing();
    room.put(InFlightIo { rq, list: None }, |cid| {
        command.entry(cid, hw.queue_data().addressed(), DataPointer::default())
    });
    Ok(())
}

/// Puts a write that must be atomic into the queue. The controller has no command of its own for
/// that, and executes any other write as it likes.
#[cold]
#[inline(never)]
fn put_atomic<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Submission<InFlightIo>,
    hw: HwQueue<'q, Io>,
    guard: &rcu::Guard,
) -> Result<(), RejectedRequest<'q, Io>> {
    let namespace = hw.queue_data();
    let (first, len) = (rq.sector().bytes(), rq.bytes());
    if !namespace
        .atomic_writes
        .is_some_and(|atomic| atomic.contains(first, len))
    {
        return Err(reject(rq, BlkStatus::INVAL));
    }
    let blocks = namespace.blocks(rq.sector(), rq.sectors());
    let command = IoCommand::write(blocks, rq.is_fua());
    put_with_list(rq, submission, command, hw, guard)
}

/// Puts the command for a request to write zeros into the queue.
#[inline(never)]
fn put_write_zeroes<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Submission<InFlightIo>,
    hw: HwQueue<'q, Io>,
) -> Result<(), RejectedRequest<'q, Io>> {
    let namespace = hw.queue_data();
    let keep = rq.is_no_unmap() || !namespace.zeroes_may_deallocate;
    let blocks = namespace.blocks(rq.sector(), rq.sectors());
    let command = IoCommand::write_zeroes(blocks, keep);
    put_without_memory(rq, submission, command, hw)
}

/// Puts a command into the queue whose memory has several ranges, or may need a list.
#[inline(never)]
fn put_with_list<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Submission<InFlightIo>,
    command: IoCommand,
    hw: HwQueue<'q, Io>,
    guard: &rcu::Guard,
) -> Result<(), RejectedRequest<'q, Io>> {
    let namespace = hw.queue_data();
    let Some(room) = submission.room(&rq) else {
        return Err(turn_away(rq, hw.data()));
    };
    let is_sgl = namespace.shared.has_sgl() && wants_sgl(&rq);
    let mapped = map_with_list(rq, &namespace.shared.pools, is_sgl, None, guard);
    let (rq, data, list) = mapped.map_err(|(rq, status)| reject(rq, status))?;
    room.put(InFlightIo { rq, list }, |cid| {
        command.entry(cid, namespace.addressed(), data)
    });
    Ok(())
}

/// A mapped request, the pointer of its command, and the memory of the list to which that leads.
type Mapped = (MappedRequest<Io>, DataPointer, Option<DmaMemory>);

/// Maps the memory of a request, and starts it. Its memory is described by a scatter-gather list or
/// by pages, of which `bounds` follows the last if it is not known how much the command moves.
#[inline]
fn map_with_list<'q>(
    rq: IdleRequest<'q, Io>,
    pools: &Pools,
    is_sgl: bool,
    bounds: Option<&lists::Guard>,
    guard: &rcu::Guard,
) -> Result<Mapped, (IdleRequest<'q, Io>, BlkStatus)> {
    if is_sgl {
        let words = usize::from(rq.nr_phys_segments()) * sgl::WORDS;
        let mut memory = sgl::Builder::new(pools.list(words));
        let rq = rq.map_and_start(guard, |address, len| memory.add(address, len))?;
        let (data, list) = memory.finish();
        Ok((rq, data, list.into_memory()))
    } else {
        let mut memory = prp::Builder::new(pools.list_of_pages(rq.bytes(), bounds));
        let rq = rq.map_and_start(guard, |address, len| memory.add(address, len))?;
        let (data, list) = memory.finish();
        Ok((rq, data, list.into_memory()))
    }
}

/// Does what [`put`] does for a command that a user has made.
///
/// A controller compares the length of a scatter-gather list with what the command moves.
#[cold]
fn put_of_user<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Submission<InFlightIo>,
    hw: HwQueue<'q, Io>,
    guard: &rcu::Guard,
) -> Result<(), RejectedRequest<'q, Io>> {
    let namespace = hw.queue_data();
    let Some(room) = submission.room(&rq) else {
        return Err(turn_away(rq, hw.data()));
    };
    let Some(command) = rq.data().user.lock().command else {
        return Err(rq.reject(BlkStatus::NOTSUPP));
    };
    if command.nsid != namespace.addressed() {
        return Err(rq.reject(BlkStatus::IOERR));
    }
    let pools = &namespace.shared.pools;
    let bounds = match command.io_moves(namespace.block_shift + 9) {
        Moves::AtMost(_) => None,
        Moves::Unknown => match pools.guard() {
            Ok(page) => Some(page),
            Err(status) => return Err(rq.reject(status)),
        },
    };
    let is_sgl = namespace.shared.has_sgl() && rq.bytes() > 0;
    let mapped = map_with_list(rq, pools, is_sgl, bounds.as_ref(), guard);
    let (rq, mut data, mut list) = mapped.map_err(|(rq, status)| rq.reject(status))?;
    if let Some(page) = bounds {
        (data, list) = page.complete(data, list);
    }
    let mut exchange = rq.data().user.lock();
    exchange.left = exchange.time;
    drop(exchange);
    rq.data().forbid_retries();
    room.put(InFlightIo { rq, list }, |cid| command.entry(cid, data));
    Ok(())
}

/// Returns whether a scatter-gather list describes the memory of a request better than its pages
/// do, or as the only one.
#[inline]
fn wants_sgl(rq: &Request<Io>) -> bool {
    let segments = u32::from(rq.nr_phys_segments()).max(1);
    let has_gaps = rq.phys_gap_mask() & (PAGE_SIZE as usize - 1) != 0;
    let threshold = params::sgl_threshold();
    has_gaps || threshold != 0 && rq.bytes().div_ceil(segments) >= threshold
}

/// Does what [`put`] does for a discard, whose command has memory of the controller.
#[inline(never)]
fn put_discard<'q>(
    rq: IdleRequest<'q, Io>,
    submission: &mut Submission<InFlightIo>,
    hw: HwQueue<'q, Io>,
) -> Result<(), RejectedRequest<'q, Io>> {
    let namespace = hw.queue_data();
    let Some(room) = submission.room(&rq) else {
        return Err(turn_away(rq, hw.data()));
    };
    let ranges = || {
        rq.discard_ranges()
            .map(|(first, len)| namespace.blocks(first, len))
    };
    let mut first = ranges();
    let (data, list, count) = match (first.next(), first.next()) {
        (Some(only), None) => match room.write_words(deallocate_range(only)) {
            Some(data) => (data, None, 1),
            None => return Err(reject(rq, BlkStatus::IOERR)),
        },
        _ => match namespace.shared.pools.deallocate_ranges(ranges()) {
            Ok(several) => several,
            Err(status) => return Err(reject(rq, status)),
        },
    };
    let in_flight = InFlightIo {
        rq: rq.start().map_nothing(),
        list,
    };
    let command = IoCommand::deallocate(count);
    room.put(in_flight, |cid| {
        command.entry(cid, namespace.addressed(), data)
    });
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
    let mut locked = pair.submission();
    let Some(submission) = &mut *locked else {
        return Err(turn_away(rq, pair));
    };
    let result = loop {
        if let Err(rejected) = put(rq, submission, hw, guard) {
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
    submission.announce(guard);
    result
}

/// Rejects a request. It ends, unless the block layer sends it again.
#[cold]
fn reject(rq: IdleRequest<'_, Io>, status: BlkStatus) -> RejectedRequest<'_, Io> {
    if status != BlkStatus::RESOURCE {
        rq.data().clear();
    }
    rq.reject(status)
}

/// Rejects a request for a queue pair that is not open.
#[cold]
fn turn_away<'q>(rq: IdleRequest<'q, Io>, pair: &QueuePair<InFlightIo>) -> RejectedRequest<'q, Io> {
    if pair.gate() == Gate::Dead {
        reject(rq, BlkStatus::IOERR)
    } else {
        reject(rq, BlkStatus::RESOURCE)
    }
}

/// Has the command of a request aborted, or has it wait once for others to be aborted; false if it
/// was aborted already, which has not helped, or has waited, and cannot be aborted yet.
fn abort(rq: &TimedOutRequest<'_, Io>, queue: u16, cid: u16) -> bool {
    if rq.data().is_aborted(cid) {
        return false;
    }
    let shared = &rq.hw_queue().queue_data().shared;
    match shared.admin.abort(queue, cid) {
        Ok(()) => {
            rq.data().set_aborted(cid);
            if shared.link.may_log() {
                let dev = shared.link.registers.device();
                dev_warn!(
                    dev,
                    "command {cid:#x} of queue {queue} timed out, and is aborted\n"
                );
            }
            true
        }
        Err(EAGAIN) if !rq.data().has_waited(cid) => {
            rq.data().set_waited(cid);
            true
        }
        Err(_) => false,
    }
}

#[vtable]
impl Operations for Io {
    type Context = NonBlocking;
    type TagSetData = Arc<Shared>;
    type QueueData = Namespace;
    type HwData = Arc<QueuePair<InFlightIo>>;
    type RequestData = IoData;
    type Timer = NoTimer;

    fn init_hw_queue(
        _: &Namespace,
        shared: &Arc<Shared>,
        index: u32,
    ) -> impl PinInit<Arc<QueuePair<InFlightIo>>, Error> {
        Ok(shared.pairs.get(index as usize).ok_or(EINVAL)?.clone())
    }

    fn init_request(_: &Arc<Shared>) -> impl PinInit<IoData> {
        /// The name of the lock class.
        static NAME: &CStr = c"rnvme_user_command";
        pin_init!(IoData {
            attempts: Attempts::new(),
            user <- SpinLockIrq::new(Exchange::default(), NAME, static_lock_class!()),
        })
    }

    fn ioctl(
        disk: &DiskAccess<'_, Self>,
        caller: IoctlCaller,
        cmd: u32,
        arg: usize,
    ) -> Result<u32> {
        let ioctls = &disk.queue_data().shared.ioctls;
        ioctls.ioctl(disk, caller, cmd, arg)
    }

    #[inline]
    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, last: bool) -> QueueResult<'q, Self> {
        let (hw, context) = (rq.hw_queue(), rq.context());
        let mut locked = hw.data().submission();
        let Some(submission) = &mut *locked else {
            return Err(turn_away(rq, hw.data()));
        };
        put(rq, submission, hw, context.rcu_guard())?;
        if last {
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

    /// Ends a request that has succeeded, on the CPU that `rq_affinity` asks for.
    fn complete(rq: CompletingRequest<Self>) {
        rq.end(Ok(()));
    }

    fn poll(hw: HwQueue<'_, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
        hw.data().poll(batch)
    }

    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let pair = rq.hw_queue().data();
        pair.look();
        let link = &rq.hw_queue().queue_data().shared.link;
        if link.state() != State::Dead && rq.data().user.lock().left.begin_next() {
            return rq.reset_timer();
        }
        link.timed_out(|| pair.identify(&rq), |queue, cid| abort(&rq, queue, cid));
        // It has ended, or is about to.
        rq.reset_timer()
    }
}
