// SPDX-License-Identifier: GPL-2.0

//! A controller: how it is enabled, what it says, how it is stopped.

use super::{
    access::Registers,
    admin::{
        self,
        AdminQueue, //
    },
    alarm::{
        Alarm,
        ResetRequest, //
    },
    budget::Budget,
    command::{
        granted_queues,
        AdminCommand,
        Identify,
        NewQueue, //
    },
    identify::{
        controller,
        nvm_limits::NvmLimits, //
    },
    instance::Instance,
    io_queue::{
        InFlightIo,
        Io,
        Shared, //
    },
    link::{
        Link,
        State, //
    },
    lists::Pools,
    namespaces::{
        Namespaces,
        Source, //
    },
    params,
    queue_pair::{
        QueueOptions,
        QueuePair, //
    },
    registers::{
        Unsupported,
        CQ_ENTRY_SHIFT,
        SQ_ENTRY_SHIFT, //
    },
};
use kernel::{
    block::{
        gendisk::Parent,
        mq::{
            memalloc_noio,
            possible_cpus,
            CpuMap,
            CpuMaps,
            QueueCounts,
            TagSet,
            TagSetOptions, //
        }, //
    },
    device::Core,
    dma::bound::DmaDevice,
    pci::{
        self,
        bus_master::BusMaster,
        vectors::{
            IrqKinds,
            IrqVectors,
            VectorRequest, //
        },
    },
    prelude::*,
    str::CString,
    sync::Arc,
    time::Delta, //
};

/// The most time for all waits until a controller is ready. The commands that it is asked then have
/// timeouts of their own.
const ENABLE_LIMIT: Delta = Delta::from_secs(180);

/// The most time that a controller gets for a shutdown, whatever it says, in milliseconds.
const MAX_SHUTDOWN_TIMEOUT: u32 = 60_000;

/// How many short lists there are for each I/O queue. A request that gets none is sent again later.
const SHORT_LISTS: usize = 256;

/// How many pages for lists there are for each I/O queue.
const LIST_PAGES: usize = 32;

/// The most of each.
const MOST_LISTS: usize = 4096;

/// The longest delay before a retry that a controller may ask for, in milliseconds. Whatever waits
/// for all requests of a disk has to wait for that, too.
const MAX_RETRY_DELAY: u32 = 5000;

/// A controller that the driver is bound to.
///
/// It is stopped before it is dropped, for which the lock of the device is needed.
pub(crate) struct Controller {
    /// First: removing a disk needs all that follows.
    namespaces: Option<Arc<Namespaces>>,
    tags: Option<Arc<TagSet<Io>>>,
    shared: Option<Arc<Shared>>,
    admin: Arc<AdminQueue>,
    link: Arc<Link>,
    dma: Arc<DmaDevice>,
    /// There while the controller is enabled.
    vectors: Option<Arc<IrqVectors>>,
    identity: Option<controller::Controller>,
    shutdown_timeout: u32,
    instance: Instance,
}

impl Controller {
    /// Enables a controller, and makes disks of its namespaces.
    ///
    /// `reset` asks for [`Self::reset_if_failed`].
    pub(crate) fn new(dev: &pci::Device<Core<'_>>, reset: Arc<dyn ResetRequest>) -> Result<Self> {
        let registers = Registers::new(dev)?;
        let link = Link::new(registers, BusMaster::new(dev)?, Alarm::new(reset)?);
        let link = Arc::pin_init(link, GFP_KERNEL)?;
        let dma = DmaDevice::new(dev.as_ref())?;
        let admin = Arc::new(AdminQueue::new(link.clone(), dma.clone())?, GFP_KERNEL)?;
        link.add(admin.pair().clone())?;
        let mut this = Self {
            namespaces: None,
            tags: None,
            shared: None,
            admin,
            link,
            dma,
            vectors: None,
            identity: None,
            shutdown_timeout: params::shutdown_timeout(),
            instance: Instance::new()?,
        };
        this.enable(dev)?;
        Ok(this)
    }

    /// Begins to look for namespaces, of which disks are made.
    fn look_for_namespaces(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        if let Some(namespaces) = &self.namespaces {
            // A reset may have interrupted the worker, and changed what there is.
            namespaces.scan();
            return Ok(());
        }
        let (Some(identity), Some(shared), Some(tags)) = (self.identity, &self.shared, &self.tags)
        else {
            return Ok(());
        };
        let namespaces = Namespaces::new(Source {
            admin: self.admin.clone(),
            shared: shared.clone(),
            tags: tags.clone(),
            dma: self.dma.clone(),
            parent: Parent::new(dev.as_ref())?,
            instance: self.instance.number(),
            identity,
            limits: self.nvm_limits()?,
            version: self.link.registers.version()?,
        })?;
        namespaces.scan();
        self.namespaces = Some(namespaces);
        Ok(())
    }

    /// Asks for the limits of commands. Not all controllers know them.
    fn nvm_limits(&self) -> Result<NvmLimits> {
        let (completion, answer) = self.admin.identify(Identify::NvmLimits)?;
        let answer = answer.filter(|_| completion.status.is_success());
        let limits = answer.as_ref().and_then(|answer| answer.first_chunk());
        Ok(limits.map_or_else(NvmLimits::default, NvmLimits::parse))
    }

    /// Lets failures be handled by a reset from now on. Before, that would wait for the lock of the
    /// device, which is held by the task that waits for the commands.
    fn go_live(&self) -> Result {
        // A command may have timed out before.
        if self.link.change(State::Live) {
            Ok(())
        } else {
            Err(EIO)
        }
    }

    /// Resets a controller that has failed.
    pub(crate) fn reset_if_failed(&mut self, dev: &pci::Device<Core<'_>>) {
        if self.link.alarm.take() && self.link.state() == State::Live {
            dev_err!(
                dev,
                "too many completions had an identifier of no command\n"
            );
            self.link.pause();
        }
        if self.link.state() != State::Resetting {
            return;
        }
        dev_warn!(dev, "the controller is being reset\n");
        self.release(dev);
        if let Err(error) = self.enable(dev) {
            dev_err!(dev, "not enabled after a reset: {error:?}\n");
        }
    }

    /// Enables the controller, and lets requests in. After an error it is stopped, and requests
    /// fail.
    ///
    /// Does nothing in [`State::Dead`]: the device may still be reset after a shutdown.
    pub(crate) fn enable(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        if !self.link.change(State::Starting) {
            return Ok(());
        }
        let result = self
            .start(dev)
            .and_then(|()| self.go_live())
            .and_then(|()| self.look_for_namespaces(dev));
        if result.is_err() {
            self.link.fail();
            self.release(dev);
        }
        result
    }

    /// Enables the controller, and creates its queues.
    ///
    /// Memory is allocated in NOIO scopes: to reclaim it may need the disks of this controller.
    fn start(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        let budget = Budget::killable(ENABLE_LIMIT);
        self.link.registers.disable(&budget)?;
        let vectors = self.allocate_vectors(dev)?;
        let options = QueueOptions {
            dev,
            registers: &self.link.registers,
            alarm: &self.link.alarm,
            vectors: &vectors,
            vector: Some(0),
            name: c"rnvme_admin",
            id: 0,
            entries: admin::ENTRIES,
        };
        let addresses = memalloc_noio(|| self.admin.pair().prepare(&options))?;
        // Not before: firmware may have left the controller enabled, with memory of its own.
        dev.set_master();
        self.link
            .registers
            .enable(&budget, admin::ENTRIES, addresses)?;
        self.admin.pair().open();
        self.identify(dev)?;
        self.create_queues(dev, &vectors)
    }

    /// Allocates interrupt vectors: one for the admin queue, and one for each CPU in each set of
    /// I/O queues, or as many as the controller has.
    ///
    /// How many queues there will be is not known yet. If there are fewer, some vectors have none.
    fn allocate_vectors(&mut self, dev: &pci::Device<Core<'_>>) -> Result<Arc<IrqVectors>> {
        let (write, _) = params::special_queues();
        let sets = [write, u32::MAX];
        let request = VectorRequest {
            min: 1,
            max: 1 + possible_cpus() + write,
            kinds: IrqKinds::All,
            before: 1,
            sets: if write > 0 { &sets } else { &[] },
        };
        let vectors = memalloc_noio(|| IrqVectors::new(dev, request))?;
        self.vectors = Some(vectors.clone());
        Ok(vectors)
    }

    /// Creates the I/O queues: as many as there are CPUs, and those that the parameters ask for, or
    /// as the controller and its vectors allow.
    fn create_queues(&mut self, dev: &pci::Device<Core<'_>>, vectors: &Arc<IrqVectors>) -> Result {
        let [default, read, ..] = vectors.sets();
        let (_, poll) = params::special_queues();
        // A single vector is for all queues.
        let wanted = QueueCounts {
            default: default.max(1),
            read,
            poll,
        };
        let most = wanted
            .total()
            .unwrap_or(u32::MAX)
            .min(u32::from(u16::MAX) - 1) as u16;
        let (answer, _) = self
            .admin
            .execute(AdminCommand::SetQueueCount(most), None)?;
        if !answer.status.is_success() {
            let code = answer.status.code();
            dev_warn!(dev, "no I/O queues: status {code:#x}\n");
            // Without queues, requests to a disk would wait forever.
            return if self.shared.is_some() {
                Err(ENODEV)
            } else {
                Ok(())
            };
        }
        let counts = divide(wanted, granted_queues(most, answer.result).into());
        let shared = self.shared(dev, counts, vectors)?;
        let link = self.link.clone();
        let options = QueueOptions {
            dev,
            registers: &link.registers,
            alarm: &link.alarm,
            vectors,
            vector: None,
            name: c"",
            id: 0,
            entries: self.entries(),
        };
        for (index, pair) in (0..).zip(shared.pairs.iter()) {
            let vector = if index < counts.default {
                Some(1 + index)
            } else {
                // The set for reads is behind that of the others.
                let index = index - counts.default;
                (index < counts.read).then_some(1 + default + index)
            };
            let vector = vector.map(|vector| vector.min(vectors.len() - 1));
            self.create_queue(pair, index as u16 + 1, QueueOptions { vector, ..options })?;
        }
        for pair in &shared.pairs {
            pair.open();
        }
        Ok(())
    }

    /// Creates an I/O queue.
    fn create_queue(
        &self,
        pair: &QueuePair<InFlightIo>,
        id: u16,
        options: QueueOptions<'_>,
    ) -> Result {
        let (submission, completion) = memalloc_noio(|| {
            let name = CString::try_from_fmt(fmt!("rnvme{}q{id}", self.instance.number()))?;
            pair.prepare(&QueueOptions {
                name: &name,
                id,
                ..options
            })
        })?;
        let new = |address| NewQueue {
            id,
            entries: options.entries.into(),
            address,
        };
        // At most the number of vectors of a device.
        let vector = options.vector.map(|vector| vector as u16);
        for command in [
            AdminCommand::CreateCompletionQueue(new(completion), vector),
            AdminCommand::CreateSubmissionQueue(new(submission)),
        ] {
            let (answer, _) = self.admin.execute(command, None)?;
            if !answer.status.is_success() {
                let code = answer.status.code();
                dev_err!(
                    options.dev,
                    "queue {id} was not created: status {code:#x}\n"
                );
                return Err(EIO);
            }
        }
        Ok(())
    }

    /// Returns the number of entries of an I/O queue: 2 to 4095.
    fn entries(&self) -> u16 {
        let most = self.link.registers.queue_entries();
        most.min(params::queue_entries().into()) as u16
    }

    /// Returns what the namespaces share, which is made when the number of queues is known.
    fn shared(
        &mut self,
        dev: &pci::Device<Core<'_>>,
        counts: QueueCounts,
        vectors: &IrqVectors,
    ) -> Result<Arc<Shared>> {
        if let (Some(shared), Some(tags)) = (&self.shared, &self.tags) {
            if tags.queue_counts() != counts {
                dev_err!(
                    dev,
                    "the controller does not have as many queues any more\n"
                );
                return Err(ENODEV);
            }
            return Ok(shared.clone());
        }
        let (count, depth) = (counts.total().ok_or(EINVAL)?, self.entries() - 1);
        let queues = count as usize;
        let mut pairs = KVec::with_capacity(queues, GFP_KERNEL)?;
        for _ in 0..count {
            let pair = QueuePair::new()?;
            self.link.add(pair.clone())?;
            pairs.push_within_capacity(pair)?;
        }
        let delays = self.identity.as_ref().map_or([0; 3], |it| it.retry_delays);
        let shared = Arc::new(
            Shared {
                link: self.link.clone(),
                admin: self.admin.clone(),
                pairs,
                pools: Pools::new(
                    dev.as_ref(),
                    (queues * SHORT_LISTS).min(MOST_LISTS),
                    (queues * LIST_PAGES).min(MOST_LISTS),
                )?,
                has_sgl: self.identity.is_some_and(|it| it.has_sgl),
                retry_delays: delays
                    .map(|delay| Delta::from_millis(delay.min(MAX_RETRY_DELAY).into())),
            },
            GFP_KERNEL,
        )?;
        let options = TagSetOptions {
            queues: counts,
            depth: depth.into(),
            timeout: Some(params::io_timeout()),
            ..TagSetOptions::default()
        };
        let [default, read, ..] = vectors.sets();
        let map = |count, vectors_of_set, first| -> Result<Option<CpuMap>> {
            if count == 0 {
                return Ok(None);
            }
            // The vectors serve all CPUs only together.
            let affinity = |queue| {
                (count == vectors_of_set)
                    .then(|| vectors.affinity(first + queue))
                    .flatten()
            };
            CpuMap::new(count, affinity).map(Some)
        };
        let maps = CpuMaps {
            default: map(counts.default, default, 1)?,
            read: map(counts.read, read, 1 + default)?,
        };
        self.tags = Some(TagSet::with_cpu_maps(options, maps, Ok(shared.clone()))?);
        self.shared = Some(shared.clone());
        Ok(shared)
    }

    /// Stops the controller before it is reset. Requests wait until it is enabled again.
    pub(crate) fn disable(&mut self, dev: &pci::Device<Core<'_>>) {
        self.link.pause();
        self.release(dev);
    }

    /// Removes the disks.
    pub(crate) fn remove_disks(&mut self) {
        self.link.retire();
        if self.link.registers.check_alive().is_err() {
            // Their requests end at once.
            self.link.fail();
        }
        if let Some(namespaces) = self.namespaces.take() {
            namespaces.remove();
        }
    }

    /// Tells the controller that it will lose its power, and frees what it uses.
    pub(crate) fn shut_down(&mut self, dev: &pci::Device<Core<'_>>) {
        self.link.retire();
        if self.vectors.is_some() {
            let limit = Delta::from_millis(MAX_SHUTDOWN_TIMEOUT.into());
            let shutdown = self
                .link
                .registers
                .announce_shutdown(&Budget::uninterrupted(limit), self.shutdown_timeout);
            if let Err(error) = shutdown {
                dev_warn!(dev, "the shutdown is not complete: {error:?}\n");
            }
        }
        self.link.give_up();
        self.release(dev);
    }

    /// Frees what the controller uses, whether or not it has stopped.
    fn release(&mut self, dev: &pci::Device<Core<'_>>) {
        // That it says to have stopped is no proof.
        pci::bus_master::clear(dev);
        self.link.free();
        if let Some(vectors) = self.vectors.take() {
            if let Err(error) = IrqVectors::free(vectors, dev) {
                dev_err!(dev, "the interrupts are not free: {error:?}\n");
            }
        }
    }

    /// Asks the controller about itself.
    fn identify(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        let (completion, answer) = self.admin.identify(Identify::Controller)?;
        if !completion.status.is_success() {
            let code = completion.status.code();
            dev_err!(
                dev,
                "the controller does not identify itself: status {code:#x}\n"
            );
            return Err(EIO);
        }
        let answer = answer.ok_or(EIO)?;
        let parsed = answer.first_chunk().and_then(|answer| {
            controller::Controller::parse(answer, SQ_ENTRY_SHIFT, CQ_ENTRY_SHIFT)
        });
        let Some(found) = parsed else {
            dev_err!(dev, "not supported: {}\n", Unsupported::EntrySize.reason());
            return Err(ENODEV);
        };
        if found.shutdown_timeout > 0 {
            self.shutdown_timeout = found.shutdown_timeout.min(MAX_SHUTDOWN_TIMEOUT);
        }
        if self.identity.is_none() {
            dev_info!(
                dev,
                "model {}, serial {}, firmware {}, transfers of {} KiB\n",
                found.model.as_str(),
                found.serial.as_str(),
                found.firmware.as_str(),
                found.max_transfer >> 10
            );
        }
        self.admin.set_abort_limit(found.abort_limit);
        self.identity = Some(found);
        Ok(())
    }
}

/// Returns how many queues of each kind there are if a controller grants so many, at least one.
fn divide(wanted: QueueCounts, granted: u32) -> QueueCounts {
    // One queue is not polled.
    let poll = wanted.poll.min(granted - 1);
    let interrupting = granted - poll;
    let for_reads = u32::from(wanted.read > 0 && interrupting > 1);
    let default = wanted.default.min(interrupting - for_reads);
    QueueCounts {
        default,
        read: wanted.read.min(interrupting - default),
        poll,
    }
}
