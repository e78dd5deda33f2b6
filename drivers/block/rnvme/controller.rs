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
        AdminCommand,
        Identify, //
    },
    completion_queue::EventSink,
    control::{
        ControlDevices,
        Facts, //
    },
    disk_limits::Abilities,
    effects::Effects,
    event::wanted_events,
    events::{
        Events,
        Sink, //
    },
    identify::{
        controller,
        nvm_limits::NvmLimits, //
    },
    instance::Instance,
    io_queues::{
        For,
        IoQueues, //
    },
    ioctl::Target,
    link::{
        Link,
        State, //
    },
    names,
    namespaces::{
        Namespaces,
        Source, //
    },
    params,
    queue_pair::{
        Gate,
        Queue,
        QueueOptions, //
    },
    quirks::Quirks,
    registers::{
        Unsupported,
        Version,
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
            QueueCounts, //
        }, //
    },
    device::Core,
    dma::bound::DmaDevice,
    pci::{
        self,
        adapter::function_reset,
        bus_master::BusMaster,
        vectors::{
            IrqKinds,
            IrqVectors,
            VectorRequest,
            MAX_VECTORS, //
        },
    },
    prelude::*,
    str::CString,
    sync::{
        atomic::Atomic,
        Arc, //
    },
    time::Delta, //
};

/// The most time for all waits until a controller is ready. The commands that it is asked then have
/// timeouts of their own.
const ENABLE_LIMIT: Delta = Delta::from_secs(180);

/// The most time that a controller gets for a shutdown, whatever it says, in milliseconds.
const MAX_SHUTDOWN_TIMEOUT: u32 = 60_000;

/// A controller that the driver is bound to.
///
/// It is stopped before it is dropped, for which the lock of the device is needed.
pub(crate) struct Controller {
    /// First: removing a disk needs all that follows.
    namespaces: Option<Arc<Namespaces>>,
    /// After the disks, which are its children.
    control: Option<ControlDevices>,
    io_queues: IoQueues,
    events: Arc<Events>,
    sink: Arc<dyn EventSink>,
    target: Arc<Target>,
    admin: Arc<AdminQueue>,
    link: Arc<Link>,
    dma: Arc<DmaDevice>,
    /// There while the controller is enabled.
    vectors: Option<Arc<IrqVectors>>,
    /// How many I/O queues there can be, if the controller has granted fewer than vectors.
    queues: Option<QueueCounts>,
    abilities: Option<Abilities>,
    shutdown_timeout: u32,
    quirks: Quirks,
    instance: Instance,
}

impl Controller {
    /// Enables a controller, and makes disks of its namespaces.
    ///
    /// `reset` asks for [`Self::reset_if_failed`].
    pub(crate) fn new(
        dev: &pci::Device<Core<'_>>,
        reset: Arc<dyn ResetRequest>,
        quirks: Quirks,
    ) -> Result<Self> {
        let registers = Registers::new(dev)?;
        let link = Link::new(registers, BusMaster::new(dev)?, Alarm::new(reset)?);
        let link = Arc::pin_init(link, GFP_KERNEL)?;
        let dma = DmaDevice::new(dev.as_ref())?;
        let admin = Arc::new(
            AdminQueue::new(dev.as_ref(), link.clone(), dma.clone())?,
            GFP_KERNEL,
        )?;
        link.add(admin.pair().clone())?;
        let events = Events::new(link.clone(), admin.clone())?;
        let target = Target::new(admin.clone(), link.clone())?;
        let mut this = Self {
            namespaces: None,
            control: None,
            io_queues: IoQueues::new(link.clone(), admin.clone(), target.clone()),
            sink: Arc::new(Sink(events.clone()), GFP_KERNEL)?,
            events,
            target,
            admin,
            link,
            dma,
            vectors: None,
            queues: None,
            abilities: None,
            shutdown_timeout: params::shutdown_timeout(),
            quirks,
            instance: Instance::new()?,
        };
        this.enable(dev)?;
        Ok(this)
    }

    /// Adds the devices of the controller in its classes. If they are there, a reset may have
    /// changed the number of queues.
    ///
    /// This is done in [`State::Starting`], where no user can wait for a reset in an attribute. If
    /// it fails, the devices are removed, which waits for the functions of attributes. A reset
    /// would wait for the lock of the device, which is held here.
    fn add_control(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        let queues = 1 + self.io_queues.count();
        if let Some(control) = &self.control {
            control.set_queue_count(queues);
            return Ok(());
        }
        let identity = *self.identity().ok_or(EIO)?;
        let parent = Parent::new(dev.as_ref())?;
        let facts = Facts {
            address: CString::try_from_fmt(fmt!("{}", dev.as_ref().name().to_str()?))?,
            instance: self.instance.number(),
            node: parent.numa_node(),
            queues: Atomic::new(queues),
            entries: self.io_queues.entries(),
        };
        self.control = Some(ControlDevices::new(
            self.link.clone(),
            self.target.clone(),
            identity,
            facts,
            parent,
        )?);
        Ok(())
    }

    /// Begins to look for namespaces, of which disks are made.
    fn look_for_namespaces(&mut self) -> Result {
        let Some(abilities) = self.abilities else {
            return Ok(());
        };
        if let Some(namespaces) = &self.namespaces {
            // A reset may have interrupted the worker, and changed what there is.
            namespaces.set_abilities(abilities);
            namespaces.scan();
            return Ok(());
        }
        let (Some(control), Some(queues)) = (&self.control, self.io_queues.made()) else {
            return Ok(());
        };
        let source = Source {
            admin: self.admin.clone(),
            shared: queues.shared.clone(),
            tags: queues.tags.clone(),
            dma: self.dma.clone(),
            parent: control.as_parent()?,
            instance: self.instance.number(),
            quirks: self.quirks,
        };
        let namespaces = Namespaces::new(source, abilities)?;
        self.events.set_namespaces(Some(namespaces.clone()));
        // Before the first disk, so that no command is executed beside its I/O.
        self.target.set_namespaces(Some(namespaces.clone()));
        namespaces.scan();
        self.namespaces = Some(namespaces);
        Ok(())
    }

    fn identity(&self) -> Option<&controller::Controller> {
        self.abilities.as_ref().map(|it| &it.identity)
    }

    /// Asks for the limits of commands. A controller that has told them before has these if it
    /// refuses to answer; not all know them.
    fn nvm_limits(&self, version: Version) -> Result<NvmLimits> {
        // Older ones know two bits of the question only, and answer another one.
        if !version.is_at_least(1, 2) {
            return Ok(NvmLimits::default());
        }
        let (completion, answer) = self.admin.identify(Identify::NvmLimits)?;
        let answer = answer.filter(|_| completion.status().is_success());
        let limits = answer.as_ref().and_then(|answer| answer.first_chunk());
        let known = || self.abilities.map_or(NvmLimits::default(), |it| it.limits);
        Ok(limits.map_or_else(known, NvmLimits::parse))
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
        if let (Some(reason), State::Live) = (self.link.alarm.take(), self.link.state()) {
            dev_err!(dev, "{}\n", reason.message());
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
            .and_then(|()| self.add_control(dev))
            .and_then(|()| self.go_live())
            .and_then(|()| self.look_for_namespaces());
        if result.is_ok() {
            self.events.ask();
        } else {
            self.link.fail();
            self.release(dev);
            if let Some(namespaces) = &self.namespaces {
                namespaces.mark_dead();
            }
        }
        result
    }

    /// Enables the controller, and creates its queues.
    ///
    /// Memory is allocated in NOIO scopes: to reclaim it may need the disks of this controller.
    fn start(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        let budget = self.stop(dev)?;
        let Some(fewer) = self.start_with(dev, &budget, self.queues, false)? else {
            return Ok(());
        };
        if self.io_queues.made().is_none() {
            // There will not be more.
            self.queues = Some(fewer);
        }
        let budget = self.budget();
        self.admin.pair().close(Gate::Paused);
        self.link.registers.disable(&budget)?;
        self.release(dev);
        self.start_with(dev, &budget, Some(fewer), true)?;
        Ok(())
    }

    /// Enables a controller that is disabled, and creates its queues: at most so many I/O queues
    /// with interrupts, if that is known.
    ///
    /// If the controller grants fewer queues than there are vectors, some vectors have no queue,
    /// and the CPUs of these get no interrupts. Unless this is the last attempt, no I/O queue is
    /// created then, and this returns how many queues there can be.
    fn start_with(
        &mut self,
        dev: &pci::Device<Core<'_>>,
        budget: &Budget,
        most: Option<QueueCounts>,
        is_last: bool,
    ) -> Result<Option<QueueCounts>> {
        let vectors = self.allocate_vectors(dev, most)?;
        let number = self.instance.number();
        let name = memalloc_noio(|| {
            CString::try_from_fmt(fmt!("{}{number}q{}", names::CONTROLLERS, admin::ID))
        })?;
        let options = QueueOptions {
            dev,
            registers: &self.link.registers,
            alarm: &self.link.alarm,
            events: Some(&self.sink),
            vectors: &vectors,
            vector: Some(0),
            name: &name,
            id: admin::ID,
            entries: admin::ENTRIES,
        };
        let addresses = memalloc_noio(|| self.admin.pair().prepare(&options))?;
        // Not before: firmware may have left the controller enabled, with memory of its own.
        dev.set_master();
        self.link
            .registers
            .enable(budget, admin::ENTRIES, addresses)?;
        self.admin.pair().open();
        self.identify(dev)?;
        let fewer = self.io_queues.create(For {
            dev,
            vectors: &vectors,
            instance: number,
            has_sgl: self.identity().is_some_and(|it| it.has_sgl),
            retry_delays: self.identity().map_or([0; 3], |it| it.retry_delays),
            is_last,
        })?;
        if fewer.is_none() {
            self.set_events(dev)?;
        }
        Ok(fewer)
    }

    /// Returns the time to enable the controller.
    fn budget(&self) -> Budget {
        if self.control.is_none() {
            Budget::killable(ENABLE_LIMIT)
        } else {
            // The disks would be dead if the task that resets the controller were killed.
            Budget::uninterrupted(ENABLE_LIMIT)
        }
    }

    /// Disables the controller, and returns what is left of the time to enable it.
    ///
    /// One that does not stop in time is reset once, and then has all the time again.
    fn stop(&self, dev: &pci::Device<Core<'_>>) -> Result<Budget> {
        let budget = self.budget();
        match self.link.registers.disable(&budget) {
            Err(ETIMEDOUT) => {}
            result => return result.map(|()| budget),
        }
        dev_warn!(
            dev,
            "the controller does not stop, so its function is reset\n"
        );
        if let Err(error) = memalloc_noio(|| function_reset::flr(dev)) {
            dev_err!(dev, "the function was not reset: {error:?}\n");
            return Err(ETIMEDOUT);
        }
        let budget = self.budget();
        self.link.registers.disable(&budget)?;
        dev_info!(
            dev,
            "the controller has stopped after a reset of its function\n"
        );
        Ok(budget)
    }

    /// Says which events the controller is to report. It may report fewer.
    fn set_events(&self, dev: &pci::Device<Core<'_>>) -> Result {
        let offered = self.identity().map_or(0, |it| it.optional_events);
        let command = AdminCommand::SetEvents(wanted_events(offered));
        let (answer, _) = self.admin.execute(command, None)?;
        if !answer.status().is_success() {
            let code = answer.status().code();
            dev_warn!(dev, "not all events are reported: status {code:#x}\n");
        }
        Ok(())
    }

    /// Allocates interrupt vectors: one for the admin queue, and one for each of these I/O queues.
    /// If their number is not known, there is one for each CPU, and one more for each queue that
    /// the parameter `write_queues` asks for. A controller may have fewer vectors.
    fn allocate_vectors(
        &mut self,
        dev: &pci::Device<Core<'_>>,
        queues: Option<QueueCounts>,
    ) -> Result<Arc<IrqVectors>> {
        let (write, most) = match queues {
            Some(queues) if queues.read > 0 => (queues.default, queues.default + queues.read),
            Some(queues) => (0, queues.default),
            None => {
                let (write, _) = params::special_queues();
                (write, possible_cpus() + write)
            }
        };
        let sets = [write, u32::MAX];
        let request = VectorRequest {
            min: 1,
            max: (1 + most).min(MAX_VECTORS),
            kinds: IrqKinds::All,
            before: 1,
            sets: if write > 0 { &sets } else { &[] },
        };
        let vectors = memalloc_noio(|| IrqVectors::new(dev, request))?;
        self.vectors = Some(vectors.clone());
        Ok(vectors)
    }

    /// Stops the controller before it is reset. Requests wait until it is enabled again.
    pub(crate) fn disable(&mut self, dev: &pci::Device<Core<'_>>) {
        self.link.pause();
        self.release(dev);
    }

    /// Removes the disks, and the devices of the controller in its classes.
    pub(crate) fn remove_disks(&mut self) {
        self.link.retire();
        if self.link.registers.check_alive().is_err() {
            // Their requests end at once, and nothing is written back.
            self.link.fail();
            if let Some(namespaces) = &self.namespaces {
                namespaces.mark_dead();
            }
        }
        self.events.set_namespaces(None);
        self.target.set_namespaces(None);
        if let Some(namespaces) = self.namespaces.take() {
            namespaces.remove();
        }
        self.control = None;
    }

    /// Lets the controller do the requests that it has, tells it that it will lose its power, and
    /// frees what it uses.
    pub(crate) fn shut_down(&mut self, dev: &pci::Device<Core<'_>>) {
        self.link.retire();
        if self.vectors.is_some() && self.link.registers.check_alive().is_ok() {
            self.link.drain(params::io_timeout());
            let limit = Delta::from_millis(MAX_SHUTDOWN_TIMEOUT.into());
            self.io_queues.delete(limit);
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
        self.events.forget();
        if let Some(vectors) = self.vectors.take() {
            if let Err(error) = IrqVectors::free(vectors, dev) {
                dev_err!(dev, "the interrupts are not free: {error:?}\n");
            }
        }
    }

    /// Asks the controller about itself.
    fn identify(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        let (completion, answer) = self.admin.identify(Identify::Controller)?;
        if !completion.status().is_success() {
            let code = completion.status().code();
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
        let Some(mut found) = parsed else {
            dev_err!(dev, "not supported: {}\n", Unsupported::EntrySize.reason());
            return Err(ENODEV);
        };
        if self.quirks.has_no_write_zeroes {
            found.optional.write_zeroes = false;
        }
        if self.quirks.has_bogus_nqn {
            found.forget_subsystem_name();
        }
        if found.shutdown_timeout > 0 {
            // What a user asks for is the least.
            let least = params::shutdown_timeout().min(MAX_SHUTDOWN_TIMEOUT);
            self.shutdown_timeout = found.shutdown_timeout.clamp(least, MAX_SHUTDOWN_TIMEOUT);
        }
        if self.identity() != Some(&found) {
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
        if let Some(control) = &self.control {
            control.set_identity(found);
        }
        let log = if found.has_effects_log {
            self.admin.command_effects()?
        } else {
            None
        };
        let log = log.as_ref().and_then(|log| log.first_chunk());
        // What it has told before holds if it refuses to tell its effects.
        if log.is_some() || !found.has_effects_log || !self.target.has_effects() {
            let effects = memalloc_noio(|| Arc::new(Effects::parse(log), GFP_KERNEL))?;
            self.target.set_effects(effects);
        }
        self.target.set_max_transfer(found.max_transfer);
        let version = self.link.registers.version()?;
        self.abilities = Some(Abilities {
            identity: found,
            limits: self.nvm_limits(version)?,
            version,
        });
        Ok(())
    }
}
