// SPDX-License-Identifier: GPL-2.0

//! A controller: how it is enabled, what it says, how it is stopped.

use super::{
    access::Registers,
    admin_queue::{
        self,
        AdminQueue, //
    },
    budget::Budget,
    identify::{
        active_list::ActiveList,
        controller::{
            self,
            MAX_NAMESPACES, //
        },
        descriptors::Identifiers,
        namespace::Namespace,
        Answer, //
    },
    queue_entry::Identify,
    registers::{
        Unsupported,
        Version,
        CQ_ENTRY_SHIFT,
        MAX_READY_TIMEOUT,
        PAGE_SIZE,
        SQ_ENTRY_SHIFT, //
    },
};
use kernel::{
    device::Core,
    dma::pool::{
        DmaBlock,
        DmaPool, //
    },
    pci::{
        self,
        vectors::{
            IrqKinds,
            IrqVectors,
            VectorRequest, //
        },
    },
    prelude::*,
    sync::Arc,
    time::Delta, //
};

/// The most time until a controller is enabled, and has said all that it is asked.
const ENABLE_LIMIT: Delta = Delta::from_secs(180);

/// For how long to wait for a shutdown if the controller does not say, in milliseconds.
const SHUTDOWN_TIMEOUT: u32 = 5000;

/// The most time that a controller gets for a shutdown, whatever it says, in milliseconds.
const MAX_SHUTDOWN_TIMEOUT: u32 = 60_000;

/// The words of 64 bits that a page consists of.
const PAGE_WORDS: usize = PAGE_SIZE / 8;

/// What an enabled controller accesses.
struct Memory {
    admin: AdminQueue,
    page: DmaBlock<u64, PAGE_WORDS>,
    _pool: DmaPool<u64, PAGE_WORDS>,
}

/// A controller that the driver is bound to.
///
/// It is disabled before it is dropped, for which the lock of the device is needed.
pub(crate) struct Controller<'bound> {
    registers: Registers<'bound>,
    /// There while the controller is enabled. It is freed when the controller is not allowed to
    /// access memory any more.
    memory: Option<Memory>,
    vectors: Option<Arc<IrqVectors>>,
    shutdown_timeout: u32,
    is_shut_down: bool,
}

impl<'bound> Controller<'bound> {
    /// Enables a controller, and logs what it says about itself.
    pub(crate) fn new(dev: &'bound pci::Device<Core<'_>>) -> Result<Self> {
        let mut this = Self {
            registers: Registers::new(dev)?,
            memory: None,
            vectors: None,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            is_shut_down: false,
        };
        this.enable(dev)?;
        Ok(this)
    }

    /// Enables the controller, and logs what it says about itself. After an error it is disabled.
    ///
    /// Does nothing once it was shut down: a machine that is shutting down may still reset it.
    pub(crate) fn enable(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        if self.is_shut_down {
            return Ok(());
        }
        let result = self.try_enable(dev);
        if result.is_err() {
            self.disable(dev);
        }
        result
    }

    fn try_enable(&mut self, dev: &pci::Device<Core<'_>>) -> Result {
        let budget = Budget::killable(ENABLE_LIMIT);
        self.registers.disable(&budget)?;
        let vectors = self.vectors.insert(IrqVectors::new(
            dev,
            VectorRequest {
                min: 1,
                max: 1,
                kinds: IrqKinds::All,
                before: 1,
                sets: &[],
            },
        )?);
        let pool = DmaPool::new(dev.as_ref(), 1)?;
        let memory = self.memory.insert(Memory {
            admin: AdminQueue::new(dev, vectors, &self.registers)?,
            page: pool.take().ok_or(ENOMEM)?,
            _pool: pool,
        });
        // Not before: firmware may have left the controller enabled, with memory of its own.
        dev.set_master();
        let addresses = memory.admin.addresses();
        self.registers
            .enable(&budget, admin_queue::ENTRIES, addresses)?;
        self.identify(&budget)
    }

    /// Stops the controller, and frees its memory, its interrupt.
    pub(crate) fn disable(&mut self, dev: &pci::Device<Core<'_>>) {
        if self.memory.is_some() {
            let limit = Delta::from_millis(MAX_READY_TIMEOUT.into());
            if let Err(error) = self.registers.disable(&Budget::killable(limit)) {
                dev_err!(dev, "the controller does not stop: {error:?}\n");
            }
        }
        self.release(dev);
    }

    /// Tells the controller that it will lose its power, and frees its memory, its interrupt.
    pub(crate) fn shut_down(&mut self, dev: &pci::Device<Core<'_>>) {
        self.is_shut_down = true;
        if self.memory.is_some() {
            let limit = Delta::from_millis(MAX_SHUTDOWN_TIMEOUT.into());
            let shutdown = self
                .registers
                .announce_shutdown(&Budget::uninterrupted(limit), self.shutdown_timeout);
            if let Err(error) = shutdown {
                dev_warn!(dev, "the shutdown is not complete: {error:?}\n");
            }
        }
        self.release(dev);
    }

    /// Frees what the controller uses, whether or not it has stopped.
    fn release(&mut self, dev: &pci::Device<Core<'_>>) {
        // That it says to have stopped is no proof.
        pci::bus_master::clear(dev);
        if let Some(memory) = self.memory.take() {
            let stray = memory.admin.stray();
            if stray > 0 {
                dev_warn!(dev, "{stray} completions were of no command\n");
            }
        }
        if let Some(vectors) = self.vectors.take() {
            if let Err(error) = IrqVectors::free(vectors, dev) {
                dev_err!(dev, "the interrupt is not free: {error:?}\n");
            }
        }
    }

    /// Asks the controller, and returns a copy of its answer; [`None`] if it refuses to answer.
    fn ask(&mut self, budget: &Budget, what: Identify) -> Result<Option<KBox<Answer>>> {
        let memory = self.memory.as_mut().ok_or(ENODEV)?;
        let to = memory.page.address();
        let completion = memory
            .admin
            .execute(&self.registers, budget, |cid| what.entry(cid, to))?;
        if !completion.status.is_success() {
            let code = completion.status.code();
            dev_warn!(
                self.registers.device(),
                "{what:?} failed: status {code:#x}\n"
            );
            return Ok(None);
        }
        let mut answer: KBox<Answer> = KBox::init(pin_init::init_zeroed(), GFP_KERNEL)?;
        for (index, bytes) in answer.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&memory.page.read(index)?.to_ne_bytes());
        }
        Ok(Some(answer))
    }

    fn identify(&mut self, budget: &Budget) -> Result {
        let dev = self.registers.device();
        let answer = self.ask(budget, Identify::Controller)?.ok_or(EIO)?;
        let Some(found) = controller::Controller::parse(&answer, SQ_ENTRY_SHIFT, CQ_ENTRY_SHIFT)
        else {
            dev_err!(dev, "not supported: {}\n", Unsupported::EntrySize.reason());
            return Err(ENODEV);
        };
        if found.shutdown_timeout > 0 {
            self.shutdown_timeout = found.shutdown_timeout.min(MAX_SHUTDOWN_TIMEOUT);
        }
        dev_info!(
            dev,
            "model {}, serial {}, firmware {}, transfers of {} KiB\n",
            found.model.as_str(),
            found.serial.as_str(),
            found.firmware.as_str(),
            found.max_transfer >> 10
        );
        let version = self.registers.version()?;
        let mut list = ActiveList::new(found.max_namespaces);
        // Older controllers have no list.
        while version.is_at_least(1, 1) {
            let Some(answer) = self.ask(budget, Identify::ActiveList(list.after()))? else {
                break;
            };
            if !list.walk(&answer, |nsid| {
                self.identify_namespace(budget, nsid, version)
            })? {
                return Ok(());
            }
        }
        let last = found.highest_nsid.min(MAX_NAMESPACES);
        (list.after() + 1..=last)
            .try_for_each(|nsid| self.identify_namespace(budget, nsid, version))
    }

    /// Logs what there is to know of a namespace. One that is gone meanwhile is left out.
    fn identify_namespace(&mut self, budget: &Budget, nsid: u32, version: Version) -> Result {
        let dev = self.registers.device();
        let Some(answer) = self.ask(budget, Identify::Namespace(nsid))? else {
            return Ok(());
        };
        match Namespace::parse(&answer) {
            Ok(namespace) => dev_info!(
                dev,
                "namespace {nsid}: {} sectors, blocks of {} bytes\n",
                namespace.sectors,
                1u32 << namespace.block_shift
            ),
            Err(unusable) => {
                dev_info!(
                    dev,
                    "namespace {nsid} is not usable: {}\n",
                    unusable.reason()
                );
                return Ok(());
            }
        }
        // Older controllers do not know the question.
        if !version.is_at_least(1, 3) {
            return Ok(());
        }
        let Some(answer) = self.ask(budget, Identify::Descriptors(nsid))? else {
            return Ok(());
        };
        if let Some(uuid) = Identifiers::parse(&answer).uuid {
            dev_info!(
                dev,
                "namespace {nsid}: uuid {:032x}\n",
                u128::from_be_bytes(uuid)
            );
        }
        Ok(())
    }
}
