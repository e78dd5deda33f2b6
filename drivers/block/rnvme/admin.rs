// SPDX-License-Identifier: GPL-2.0

//! Administrative commands, which are requests of a queue without a disk.

use super::{
    command::{
        AdminCommand,
        Identify, //
    },
    completion_queue::Command,
    identify::Answer,
    link::{
        Link,
        State, //
    },
    lists::Pools,
    params,
    prp::{
        self,
        Builder, //
    },
    queue_entry::{
        Completion,
        SqEntry, //
    },
    queue_pair::{
        Gate,
        QueuePair, //
    },
    user_command::{
        Moves,
        Parts,
        UserCommand, //
    }, //
};
use kernel::{
    block::{
        limits::QueueLimits,
        mq::{
            memalloc_noio,
            IdleRequest,
            InFlight,
            IoCompletionBatch,
            MappedRequest,
            NoTimer,
            NonBlocking,
            Operations,
            Passthrough,
            PassthroughOp,
            PassthroughQueue,
            QueueResult,
            Request,
            TagSet,
            TagSetOptions,
            TimedOutRequest,
            TimeoutAction, //
        },
        BlkStatus,
        Sectors, //
    },
    device::{
        Bound,
        Device, //
    },
    dma::{
        bound::DmaDevice,
        pool::DmaMemory, //
    },
    prelude::*,
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
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// The number of the queue pair.
pub(crate) const ID: u16 = 0;

/// The number of entries of each of the two queues.
pub(crate) const ENTRIES: u16 = 32;

/// The most commands that are aborted at once, whatever the controller allows.
const MAX_ABORTS: u32 = 5;

/// How many tags are for the commands of the driver itself. Those of users can have all others for
/// as long as they like.
///
/// At the same time there are at most:
///
/// * one of the task that holds the lock of the device, and enables the controller or stops it;
/// * one of the worker that handles events;
/// * one of those that look for namespaces, or ask for their format, with the lock for that;
/// * the aborts.
///
/// So none of them waits for a tag, or only for a moment: an abort does not count any more when its
/// tag is about to be freed. When the controller is stopped, all of them end, so a task that
/// enables it then gets a tag.
const RESERVED_TAGS: u32 = 3 + MAX_ABORTS;

/// The log page that says which commands there are, and their effects.
const COMMAND_EFFECTS: u8 = 0x05;

/// How many lists of pages of each kind there are. A request that gets none is sent again later.
const LISTS: usize = 8;

/// The driver of the queue.
pub(crate) struct Admin;

/// The data of the queue.
pub(crate) struct AdminData {
    link: Arc<Link>,
    pair: Arc<QueuePair<InFlightAdmin>>,
    /// How many commands are being aborted.
    aborts: Atomic<u32>,
    /// How many may be at once.
    abort_limit: Atomic<u32>,
    pools: Pools,
}

impl AdminData {
    /// Lets another command be aborted if `command` has aborted one, and has ended.
    fn ended(&self, command: Option<AdminCommand>) {
        if matches!(command, Some(AdminCommand::Abort { .. })) {
            self.forget_abort();
        }
    }

    /// Counts one abort less.
    fn forget_abort(&self) {
        self.aborts.fetch_sub(1, Relaxed);
    }
}

/// The data of a request: what it asks for, and the answer, which an interrupt handler writes.
#[derive(Default)]
pub(crate) struct Exchange {
    command: Option<AdminCommand>,
    pub(crate) completion: Option<Completion>,
    /// The controller was stopped.
    pub(crate) is_cancelled: bool,
    time: Parts,
    /// When a user's command was made.
    begin: Option<Instant<Monotonic>>,
}

/// A command that the controller has.
pub(crate) struct InFlightAdmin {
    rq: MappedRequest<Admin>,
    /// Kept until the command has completed.
    list: Option<DmaMemory>,
}

impl InFlight for InFlightAdmin {
    type Driver = Admin;

    #[inline]
    fn request(&self) -> &Request<Admin> {
        &self.rq
    }
}

impl Command for InFlightAdmin {
    fn complete(
        self,
        completion: Completion,
        guard: &rcu::Guard,
        _batch: &mut IoCompletionBatch<'_, Admin>,
    ) {
        let Self { rq, list } = self;
        let rq = rq.unmap(guard);
        drop(list);
        let command = {
            let mut exchange = rq.data().lock();
            exchange.completion = Some(completion);
            exchange.command
        };
        let data = rq.queue_data();
        data.ended(command);
        if let Some(AdminCommand::Abort { queue, cid }) = command {
            log_abort(&data.link, queue, cid, completion);
        }
        rq.end(Ok(()));
    }

    fn cancel(self, guard: &rcu::Guard, _again: bool) {
        let rq = self.rq.unmap(guard);
        let command = {
            let mut exchange = rq.data().lock();
            exchange.is_cancelled = true;
            exchange.command
        };
        rq.queue_data().ended(command);
        rq.end(Err(BlkStatus::IOERR));
    }
}

/// Logs what a controller says of a command that it was to abort.
fn log_abort(link: &Link, queue: u16, cid: u16, completion: Completion) {
    if !link.may_log() {
        return;
    }
    let dev = link.registers.device();
    let code = completion.status().code();
    if code != 0 {
        dev_warn!(
            dev,
            "command {cid:#x} of queue {queue}: Abort failed: status {code:#x}\n"
        );
    } else if completion.result() & 1 == 0 {
        dev_warn!(dev, "command {cid:#x} of queue {queue} was aborted\n");
    } else {
        dev_warn!(dev, "command {cid:#x} of queue {queue} was not aborted\n");
    }
}

#[vtable]
impl Operations for Admin {
    type Context = NonBlocking;
    type TagSetData = ();
    type QueueData = AdminData;
    type HwData = ();
    type RequestData = SpinLockIrq<Exchange>;
    type Timer = NoTimer;

    fn init_hw_queue(_: &AdminData, (): &(), _index: u32) -> impl PinInit<(), Error> {
        Ok(())
    }

    fn init_request((): &()) -> impl PinInit<SpinLockIrq<Exchange>> {
        /// The name of the lock class.
        static NAME: &CStr = c"rnvme_admin_request";
        SpinLockIrq::new(Exchange::default(), NAME, static_lock_class!())
    }

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        let data = rq.queue_data();
        let pair = &data.pair;
        let Some(command) = rq.data().lock().command else {
            return Err(rq.reject(BlkStatus::NOTSUPP));
        };
        if pair.gate() != Gate::Open {
            data.ended(Some(command));
            return Err(rq.reject(BlkStatus::IOERR));
        }
        let guard = rcu::read_lock();
        let bounds = match command {
            AdminCommand::User(command) if command.admin_moves() == Moves::Unknown => {
                match data.pools.guard() {
                    Ok(page) => Some(page),
                    Err(status) => return Err(rq.reject(status)),
                }
            }
            _ => None,
        };
        // A command that aborts another one has no memory, so this does not fail for it.
        let list = data.pools.list_of_pages(rq.bytes(), bounds.as_ref());
        let mut memory = Builder::new(list);
        let rq = rq
            .map_and_start(&guard, |address, len| memory.add(address, len))
            .map_err(|(rq, status)| rq.reject(status))?;
        let (mut pointer, list) = memory.finish();
        let mut list = list.into_memory();
        if let Some(page) = bounds {
            (pointer, list) = page.complete(pointer, list);
        }
        let entry = |cid| -> SqEntry { command.entry(cid, pointer) };
        if let Err(command) = pair.submit(&guard, InFlightAdmin { rq, list }, entry) {
            command.cancel(&guard, false);
        }
        Ok(())
    }

    fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
        let data = rq.hw_queue().queue_data();
        data.pair.look();
        let (begin, has_time) = {
            let mut exchange = rq.data().lock();
            (exchange.begin, exchange.time.begin_next())
        };
        let is_new = begin
            .is_some_and(|begin| begin.elapsed().as_nanos() < params::admin_timeout().as_nanos());
        let may_wait = match data.link.state() {
            State::Dead => false,
            // The disks would be dead, for the time that a user chose. The controller gets as long
            // as it has for a command of the driver itself.
            State::Starting => has_time || is_new,
            _ => has_time,
        };
        if may_wait {
            return rq.reset_timer();
        }
        // To abort such a command does not help: it may be the one that aborts.
        data.link
            .timed_out(|| data.pair.identify(&rq), |_, _| false);
        // It has ended, or is about to.
        rq.reset_timer()
    }
}

/// The queue of administrative commands.
pub(crate) struct AdminQueue {
    queue: PassthroughQueue<Admin>,
    pair: Arc<QueuePair<InFlightAdmin>>,
}

impl AdminQueue {
    /// Makes the queue of a controller.
    pub(crate) fn new(dev: &Device<Bound>, link: Arc<Link>, dma: Arc<DmaDevice>) -> Result<Self> {
        let options = TagSetOptions {
            // One entry is always empty, and one is left for events.
            depth: u32::from(ENTRIES) - 2,
            reserved_tags: RESERVED_TAGS,
            timeout: Some(params::admin_timeout()),
            no_sched: true,
            ..TagSetOptions::default()
        };
        let limits = QueueLimits {
            virt_boundary_mask: prp::PAGE_SIZE as usize - 1,
            dma_alignment: 3,
            max_segments: prp::LIST_ENTRIES as u16,
            max_hw_sectors: Sectors::from_bytes(prp::MAX_BYTES.into()),
            ..QueueLimits::default()
        };
        let pair = QueuePair::new()?;
        let tags = TagSet::new(options, Ok(()))?;
        let data = AdminData {
            link,
            pair: pair.clone(),
            aborts: Atomic::new(0),
            abort_limit: Atomic::new(0),
            pools: Pools::new(dev, LISTS, LISTS)?,
        };
        let queue = PassthroughQueue::new(tags, &limits, Some(dma), Ok(data))?;
        Ok(Self { queue, pair })
    }

    /// Returns the tag set, which keeps the module in memory.
    pub(crate) fn tags(&self) -> &Arc<TagSet<Admin>> {
        self.queue.tag_set()
    }

    /// Returns the queue pair.
    pub(crate) fn pair(&self) -> &Arc<QueuePair<InFlightAdmin>> {
        &self.pair
    }

    /// Sends a command, and waits until it has completed. `buffer` is what the controller writes
    /// its answer to, if there is one.
    ///
    /// # Errors
    ///
    /// `EIO` if the controller failed, and was stopped.
    pub(crate) fn execute(
        &self,
        command: AdminCommand,
        buffer: Option<KVVec<u8>>,
    ) -> Result<(Completion, Option<KVVec<u8>>)> {
        let mut rq = self.queue.reserved_request(PassthroughOp::In)?;
        {
            let mut exchange = rq.data().lock();
            *exchange = Exchange {
                command: Some(command),
                ..Exchange::default()
            };
        }
        if let Some(buffer) = buffer {
            rq = memalloc_noio(|| rq.with_buffer(buffer))?;
        }
        let done = rq.execute()?;
        done.status().map_err(|_| EIO)?;
        let completion = done.data().lock().completion.take();
        Ok((completion.ok_or(EIO)?, done.into_buffer()))
    }

    /// Says how many commands the controller can abort at once.
    pub(crate) fn set_abort_limit(&self, limit: u32) {
        let limit = limit.min(MAX_ABORTS);
        self.queue.queue_data().abort_limit.store(limit, Relaxed);
    }

    /// Has the command with an identifier in a submission queue aborted. Does not wait.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if this is not possible before other commands have ended.
    pub(crate) fn abort(&self, queue: u16, cid: u16) -> Result {
        let data = self.queue.queue_data();
        if data.aborts.fetch_add(1, Relaxed) >= data.abort_limit.load(Relaxed) {
            data.forget_abort();
            return Err(EAGAIN);
        }
        let rq = self.queue.try_reserved_request(PassthroughOp::In);
        let rq = rq.inspect_err(|_| data.forget_abort())?;
        {
            let mut exchange = rq.data().lock();
            *exchange = Exchange {
                command: Some(AdminCommand::Abort { queue, cid }),
                ..Exchange::default()
            };
        }
        // If it is executed, its end is counted.
        rq.execute_nowait().inspect_err(|_| data.forget_abort())
    }

    /// Returns a request for a command that a user has made, who gives it that time. Waits if the
    /// commands of others have all tags that are not reserved.
    pub(crate) fn request_of_user(
        &self,
        command: UserCommand,
        time: Parts,
    ) -> Result<Passthrough<'_, Admin>> {
        let op = if command.is_write() {
            PassthroughOp::Out
        } else {
            PassthroughOp::In
        };
        let rq = self.queue.request(op)?;
        *rq.data().lock() = Exchange {
            command: Some(AdminCommand::User(command)),
            time,
            begin: Some(Instant::now()),
            ..Exchange::default()
        };
        Ok(rq)
    }

    /// Asks the controller which commands there are, and returns the log if it has one.
    pub(crate) fn command_effects(&self) -> Result<Option<KVVec<u8>>> {
        let buffer = memalloc_noio(|| KVVec::from_elem(0u8, size_of::<Answer>(), GFP_KERNEL))?;
        let command = AdminCommand::GetLog {
            page: COMMAND_EFFECTS,
            bytes: size_of::<Answer>() as u32,
        };
        let (completion, log) = self.execute(command, Some(buffer))?;
        Ok(log.filter(|_| completion.status().is_success()))
    }

    /// Asks the controller about something. What it returns is an answer only if the command has
    /// succeeded.
    pub(crate) fn identify(&self, what: Identify) -> Result<(Completion, Option<KVVec<u8>>)> {
        let buffer = memalloc_noio(|| KVVec::from_elem(0u8, size_of::<Answer>(), GFP_KERNEL))?;
        self.execute(AdminCommand::Identify(what), Some(buffer))
    }
}
