// SPDX-License-Identifier: GPL-2.0

//! Turns operations on devices into commands.

use super::{settings::Setting, Fault, InZone, Io, Operation, Part, Place, BAD, PARTS};
use crate::{
    command::{Answer, Command, Cuts, Data, Engine, Transfer},
    model::{Judgement, Model, System},
    transfer::PAGE,
};
use proptest::sample::Index;

/// Bytes on which operations work: more than fit into the smallest cache.
pub(super) const AREA: u64 = 2 << 20;

/// So many bytes fit into one request, whatever the disk.
const ONE_REQUEST: u64 = 64 << 10;

struct Device {
    name: &'static str,
    block: u64,
    virt_boundary: bool,
}

/// The commands so far, with what is known of the devices.
pub struct Script<'a> {
    /// Those that both drivers have; others are not set.
    attributes: &'a [String],
    devices: Vec<Device>,
    /// The device of the current operation.
    current: usize,
    /// The block size to which a power cycle changes.
    other_block: Option<u64>,
    /// Whether there may be fewer tags than transfers.
    shallow: bool,
    /// Whether there may be a cache.
    cache: bool,
    /// Whether bad sectors may become good when a request meets them.
    pub(super) once: bool,
    /// Whether faults can be injected.
    faults: bool,
    commands: Vec<Command>,
    /// What becomes of the devices, of which each knows its zones.
    pub(super) model: Model,
}

impl<'a> Script<'a> {
    pub fn new(
        attributes: &'a [String],
        faults: bool,
        system: System,
        other_block: Option<u64>,
    ) -> Self {
        Self {
            attributes,
            devices: Vec::new(),
            current: 0,
            other_block,
            shallow: false,
            cache: false,
            once: false,
            faults,
            commands: Vec::new(),
            model: Model::new(system, false),
        }
    }

    /// Adds a command; returns whether it will succeed.
    pub(super) fn push(&mut self, command: Command) -> bool {
        let answer = Answer {
            text: "ok".into(),
            bytes: Vec::new(),
        };
        let answers = vec![answer; command.transfers().len().max(1)];
        let judgement = self.model.judge(&command, &answers);
        self.commands.push(command);
        judgement == Judgement::Right
    }

    /// Loads the driver with other parameters.
    pub fn load(&mut self, parameters: Vec<Setting>) {
        self.shallow = true;
        let parameters = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let words = ["load".into(), "nr_devices=0".into()]
            .into_iter()
            .chain(parameters);
        self.push(Command::Words(words.collect()));
    }

    /// Makes a device with a block size and other settings.
    pub fn add(&mut self, name: &'static str, (block, settings): (u64, Vec<Setting>)) {
        self.current = self.devices.len();
        self.devices.push(Device {
            name,
            block,
            virt_boundary: settings.iter().any(|(name, _)| *name == "virt_boundary"),
        });
        self.words(&["mkdir", name]);
        self.set("blocksize", &block.to_string());
        for (name, text) in settings {
            self.set(name, &text);
        }
        self.set("power", "1");
    }

    /// Does all operations, then shows all of the devices; returns all commands.
    pub fn finish(mut self, operations: Vec<(Index, Operation)>) -> Vec<Command> {
        for (device, operation) in operations {
            self.current = device.index(self.devices.len());
            self.operation(operation);
        }
        for device in 0..self.devices.len() {
            self.current = device;
            self.words(&["attributes", self.name()]);
            self.words(&["disk", self.name()]);
            if self.zones().is_some() {
                self.finish_zones();
                continue;
            }
            for half in 0..4 {
                if half == 2 {
                    // What was beyond the end, too.
                    self.set("power", "0");
                    self.set("size", "4");
                    self.set("power", "1");
                }
                self.io(Io::Read, half * AREA / 2, AREA / 2, Vec::new());
            }
        }
        self.commands
    }

    pub(super) fn name(&self) -> &'static str {
        self.devices[self.current].name
    }

    pub(super) fn block(&self) -> u64 {
        self.devices[self.current].block
    }

    pub(super) fn words(&mut self, words: &[&str]) -> bool {
        self.push(Command::words(words))
    }

    /// Sets an attribute, if both drivers have it.
    pub(super) fn set(&mut self, name: &str, text: &str) {
        let directory = name.split('/').next().unwrap_or(name);
        self.cache |= name == "cache_size";
        self.once |= name == "badblocks_once";
        if name == "power" || name != directory || self.attributes.iter().any(|a| a == name) {
            self.words(&["set", &format!("{}/{name}", self.name()), text]);
        }
    }

    pub(super) fn transfer(
        &self,
        offset: u64,
        len: u64,
        data: Option<Data>,
        cuts: Cuts,
    ) -> Transfer {
        Transfer {
            disk: self.name().into(),
            offset,
            len: len as usize,
            data,
            cuts,
        }
    }

    /// Adds a request; returns whether it will succeed.
    pub(super) fn io(&mut self, io: Io, offset: u64, len: u64, cuts: Cuts) -> bool {
        let transfer = |data| Command::Transfer(self.transfer(offset, len, data, cuts));
        let (verb, len) = match io {
            Io::Read => return self.push(transfer(None)),
            Io::Write(data) => return self.push(transfer(Some(data))),
            Io::Flush => return self.words(&["flush", self.name()]),
            Io::Discard => ("discard", len),
            // The block layer splits longer ranges as it likes.
            Io::Zero => ("zero", len.min(32768)),
        };
        self.words(&[verb, self.name(), &offset.to_string(), &len.to_string()])
    }

    /// Offset and length of so many blocks.
    fn range(&self, Place { at, blocks, .. }: Place) -> (u64, u64) {
        let len = (blocks * self.block()).min(AREA / 4);
        let places = (AREA - len) / self.block() + 1;
        (at.index(places as usize) as u64 * self.block(), len)
    }

    /// A disk with a virtual boundary can be given only whole pages.
    pub(super) fn cuts(&self, mut cuts: Cuts) -> Cuts {
        if self.devices[self.current].virt_boundary {
            for (skip, len) in &mut cuts {
                (*skip, *len) = (0, len.next_multiple_of(PAGE));
            }
        }
        cuts
    }

    fn operation(&mut self, operation: Operation) {
        match operation {
            Operation::Io(io, place, cuts) if self.zones().is_some() => {
                self.zoned_io(io, place, self.cuts(cuts));
            }
            Operation::Io(io, place, cuts) => {
                let (offset, len) = self.range(place);
                self.io(io, offset, len, self.cuts(cuts));
            }
            Operation::Batch {
                parts,
                first,
                engine,
            } => self.batch(parts, first, engine),
            Operation::Misfit(io, (offset, len)) => {
                let len = self.left_in_zone(io, offset).min(len);
                let succeeds = self.io(io, offset, len, Vec::new());
                self.after_write(succeeds, offset, InZone::Elsewhere);
            }
            Operation::PowerCycle(change) => {
                self.set("power", "0");
                if let Some((name, text)) = change {
                    self.set(name, &text);
                }
                if let Some(block) = self.other_block.take() {
                    self.devices[self.current].block = block;
                    self.set("blocksize", &block.to_string());
                }
                self.set("power", "1");
            }
            Operation::Set((name, text)) => self.set(name, &text),
            Operation::BadBlocks { add, first, count } => {
                let sign = if add { '+' } else { '-' };
                let last = (first + count).min(BAD.1) - 1;
                let base = BAD.0 + self.first_sequential();
                let text = format!("{sign}{}-{}", base + first.min(last), base + last);
                self.set("badblocks", &text);
            }
            Operation::Zone(operation, at) => self.zone_operation(operation, at),
            // A write that times out is lost to the block layer, but not to the zone.
            Operation::Fault(fault, io, place) if self.faults && self.zones().is_none() => {
                let (offset, len) = self.range(place);
                // Of several requests it is not known which meets the fault.
                self.fault(fault, io, offset, len.min(ONE_REQUEST));
            }
            Operation::Fault(..) => {}
            Operation::Attributes => {
                self.words(&["attributes", self.name()]);
            }
            Operation::Disk => {
                self.words(&["disk", self.name()]);
            }
        }
    }

    /// Does a request that meets a fault.
    fn fault(&mut self, fault: Fault, io: Io, offset: u64, len: u64) {
        let request = |script: &mut Self| {
            script.io(io, offset, len, Vec::new());
        };
        match fault {
            Fault::Timeout => {
                self.timeout("200");
                self.inject("timeout_inject", 1, request);
                self.timeout("5000");
            }
            Fault::Requeue(times) => self.inject("requeue_inject", times, request),
            Fault::RequeueAndTimeout => self.inject("requeue_inject", 1, |script| {
                script.inject("timeout_inject", 1, request);
            }),
            Fault::InitHctx => {
                self.set("power", "0");
                self.inject("init_hctx_fault_inject", 1, |script| {
                    script.set("power", "1")
                });
                self.set("power", "1");
            }
        }
    }

    /// Sets how long a request may take.
    fn timeout(&mut self, milliseconds: &str) {
        self.words(&["sysfs", self.name(), "queue/io_timeout", milliseconds]);
    }

    /// Does something while faults are certain, so many times.
    fn inject(&mut self, fault: &str, times: u32, then: impl FnOnce(&mut Self)) {
        // With `verbose` the kernel prints a stack trace.
        self.set(&format!("{fault}/verbose"), "0");
        self.set(&format!("{fault}/times"), &times.to_string());
        self.set(&format!("{fault}/probability"), "100");
        then(self);
        self.set(&format!("{fault}/probability"), "0");
    }

    /// Transfers that are in flight together, so that it does not matter which of them ends first.
    fn batch(&mut self, parts: Vec<Part>, first: usize, engine: Engine) {
        let engine = self.engine(engine, &parts[0]);
        // Of sectors that are bad once it is not known which transfer meets them first.
        let good = |slot: &usize| !self.once || *slot > 1;
        let slots: Vec<_> = (0..PARTS)
            .map(|i| (first + i * 3) % PARTS)
            .filter(good)
            .collect();
        let polled = engine == Engine::Polled;
        // A flush that goes to a poll queue is none on null_blk, and may never be polled.
        let durable = !(polled && self.cache);
        // io_uring leaves what would wait, for a tag or for the second request of a transfer, to
        // its worker threads. In emulated guests some of that was lost, with nothing in flight in
        // the block layer, with either driver.
        let may_wait = engine == Engine::Threads;
        let most = if self.shallow && !may_wait { 1 } else { PARTS };
        let longest = if may_wait { AREA } else { ONE_REQUEST };
        let mut transfers = Vec::new();
        for (slot, mut part) in slots.into_iter().zip(parts).take(most) {
            // When null_blk is polled it may sleep to allocate memory where it must not, which
            // kernels with faults detect.
            part.data = part.data.filter(|_| !(polled && self.faults));
            if let Some(data) = &mut part.data {
                data.fua &= durable;
            }
            self.current = part.disk.index(self.devices.len());
            let transfer = match self.zones() {
                Some(_) => self.part_in_zone(slot, longest, part, &transfers, polled),
                None => Some(self.part(slot, longest, part)),
            };
            transfers.extend(transfer);
        }
        if transfers.is_empty() {
            return;
        }
        let disks: Vec<_> = transfers.iter().map(|part| part.disk.clone()).collect();
        if !self.push(Command::Batch(engine, transfers)) {
            for device in 0..self.devices.len() {
                self.current = device;
                if disks.iter().any(|disk| disk == self.name()) {
                    self.report();
                }
            }
        }
    }

    /// A transfer in one of the parts of the disk. It does not reach the next part, so that the
    /// block layer does not merge two transfers.
    fn part(&mut self, slot: usize, longest: u64, part: Part) -> Transfer {
        let room = AREA / PARTS as u64;
        let len = (part.place.blocks * self.block())
            .min(longest)
            .min(room - self.block());
        let place = part.place.at.index(((room - len) / self.block()) as usize) as u64;
        let offset = slot as u64 * room + place * self.block();
        self.transfer(offset, len, part.data, self.cuts(part.cuts))
    }
}
