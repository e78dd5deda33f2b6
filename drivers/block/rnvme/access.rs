// SPDX-License-Identifier: GPL-2.0

//! The registers of a controller, as they are accessed.

use super::{
    budget::Budget,
    registers::{
        admin_queue_attributes,
        offset,
        Capabilities,
        Configuration,
        Side,
        Status,
        Unsupported,
        Version,
        SUBSYSTEM_RESET, //
    },
};
use kernel::{
    device::Bound,
    io::Io,
    pci::{
        self,
        bar::{
            BoundBar,
            Doorbell, //
        },
    },
    prelude::*,
    sync::{
        aref::ARef,
        rcu,
        Arc, //
    },
    time::Delta, //
};

/// How often to look whether a controller has become ready, or has stopped.
const INTERVAL: Delta = Delta::from_millis(2);

/// The registers of a controller that this driver supports.
pub(crate) struct Registers {
    dev: ARef<pci::Device>,
    bar: Arc<BoundBar>,
    capabilities: Capabilities,
}

/// Says why a controller is refused.
fn refuse(dev: &pci::Device, unsupported: Unsupported) -> Error {
    dev_err!(dev, "not supported: {}\n", unsupported.reason());
    ENODEV
}

fn read(bar: &BoundBar, at: usize) -> Result<u32> {
    let guard = rcu::read_lock();
    bar.access(&guard).ok_or(ENODEV)?.try_read32(at)
}

/// Reads what a controller can do, and refuses one that this driver cannot work with.
fn capabilities(dev: &pci::Device, bar: &BoundBar) -> Result<Capabilities> {
    let low = read(bar, offset::CAP)?;
    let high = read(bar, offset::CAP + 4)?;
    let cap = u64::from(high) << 32 | u64::from(low);
    Capabilities::parse(cap).map_err(|unsupported| refuse(dev, unsupported))
}

impl Registers {
    pub(crate) fn new(dev: &pci::Device<Bound>) -> Result<Self> {
        let bar = BoundBar::map(dev, 0, c"rnvme")?;
        if Status(read(&bar, offset::CSTS)?).is_gone() {
            return Err(refuse(dev, Unsupported::Gone));
        }
        let capabilities = capabilities(dev, &bar)?;
        // The last doorbell of the admin queue. Those of an I/O queue are checked when it is made.
        capabilities
            .doorbell(0, Side::Completion, bar.len())
            .map_err(|unsupported| refuse(dev, unsupported))?;
        Ok(Self {
            dev: dev.into(),
            bar,
            capabilities,
        })
    }

    /// Returns the device, which may not be bound any more.
    pub(crate) fn device(&self) -> &pci::Device {
        &self.dev
    }

    /// Returns the most entries that an I/O queue may have: 2 to 65,536.
    pub(crate) fn queue_entries(&self) -> u32 {
        self.capabilities.queue_entries()
    }

    fn read(&self, at: usize) -> Result<u32> {
        read(&self.bar, at)
    }

    fn write(&self, at: usize, value: u32) -> Result {
        let guard = rcu::read_lock();
        self.bar
            .access(&guard)
            .ok_or(ENODEV)?
            .try_write32(value, at)
    }

    /// Writes a register of 64 bits as two halves, which not all controllers take as one.
    fn write64(&self, at: usize, value: u64) -> Result {
        self.write(at, value as u32)?;
        self.write(at + 4, (value >> 32) as u32)
    }

    fn status(&self) -> Result<Status> {
        Ok(Status(self.read(offset::CSTS)?))
    }

    /// Fails if the controller is gone, or reports a fatal error.
    pub(crate) fn check_alive(&self) -> Result {
        let status = self.status()?;
        if status.is_gone() {
            Err(ENODEV)
        } else if status.is_fatal() {
            Err(EIO)
        } else {
            Ok(())
        }
    }

    /// Returns the doorbell of a queue.
    pub(crate) fn doorbell(&self, queue: u16, side: Side) -> Result<Doorbell> {
        let at = self
            .capabilities
            .doorbell(queue, side, self.bar.len())
            .map_err(|_| EINVAL)?;
        Doorbell::new(self.bar.clone(), at)
    }

    /// Resets all controllers of the subsystem, this one among them, without a wait.
    ///
    /// # Errors
    ///
    /// `ENOTTY` if the controller cannot do that; `ENODEV` if it is gone.
    pub(crate) fn reset_subsystem(&self) -> Result {
        if !self.capabilities.has_subsystem_reset() {
            return Err(ENOTTY);
        }
        self.write(offset::NSSR, SUBSYSTEM_RESET)
    }

    /// Returns which version of the specification the controller follows.
    pub(crate) fn version(&self) -> Result<Version> {
        Ok(Version(self.read(offset::VS)?))
    }

    /// Waits until `is_done`, for some milliseconds. A controller that is gone is always done.
    fn wait(
        &self,
        budget: &Budget,
        milliseconds: u32,
        is_done: impl Fn(Status) -> bool,
    ) -> Result<Status> {
        budget.wait(
            Delta::from_millis(milliseconds.into()),
            INTERVAL,
            || self.status(),
            |status| status.is_gone() || is_done(*status),
        )
    }

    /// Returns for how long to wait until a controller with these capabilities is ready, or is not,
    /// in milliseconds.
    fn ready_timeout(&self, capabilities: Capabilities) -> Result<u32> {
        let crto = if capabilities.has_ready_timeouts() {
            Some(self.read(offset::CRTO)?)
        } else {
            None
        };
        Ok(capabilities.ready_timeout(crto))
    }

    /// Tells the controller that it will lose its power, and waits for some milliseconds until it
    /// is ready for that. It remains enabled, as to disable it would end that state.
    pub(crate) fn announce_shutdown(&self, budget: &Budget, milliseconds: u32) -> Result {
        self.check_alive()?;
        if !self.status()?.is_ready() {
            // The controller was reset meanwhile, so it has nothing to save.
            return Ok(());
        }
        let configuration = Configuration(self.read(offset::CC)?);
        self.write(offset::CC, configuration.shutdown())?;
        self.wait(budget, milliseconds, Status::is_shut_down)?;
        self.check_alive()
    }

    /// Disables the controller.
    pub(crate) fn disable(&self, budget: &Budget) -> Result {
        let configuration = Configuration(self.read(offset::CC)?);
        self.write(offset::CC, configuration.stopped())?;
        let timeout = self.ready_timeout(self.capabilities)?;
        self.wait(budget, timeout, |status| !status.is_ready())?;
        Ok(())
    }

    /// Enables the controller, with admin queues of so many entries each at these addresses: that
    /// of the submission queue, then that of the completion queue.
    pub(crate) fn enable(&self, budget: &Budget, entries: u16, addresses: (u64, u64)) -> Result {
        let configuration = self.capabilities.configuration();
        if let Some(bit) = self.status()?.subsystem_reset() {
            self.write(offset::CSTS, bit)?;
        }
        self.write(offset::AQA, admin_queue_attributes(entries))?;
        self.write64(offset::ASQ, addresses.0)?;
        self.write64(offset::ACQ, addresses.1)?;
        self.write(offset::CC, configuration.disabled())?;
        // What is written here may change what CAP says of the time.
        let timeout = self.ready_timeout(capabilities(&self.dev, &self.bar)?)?;
        self.write(offset::CC, configuration.enabled())?;
        self.wait(budget, timeout, |status| {
            status.is_ready() || status.is_fatal()
        })?;
        self.check_alive()
    }
}
