// SPDX-License-Identifier: GPL-2.0

//! What operations on one device come to, as questions.

mod together;

mod fault;

pub use fault::{Fault, Victim};

use super::operation::{Odd, Operation, BAD};
use super::settings::Settings;
use crate::question::{Cuts, Question};
use proptest::sample::Index;

/// Bytes on which operations work: more than fit into the smallest cache.
const AREA: u64 = 2 << 20;

/// The page that memory is cut along.
const PAGE: usize = 4096;

/// A device.
struct Device {
    name: &'static str,
    block: u64,
    virt_boundary: bool,
}

/// Devices that are asked about.
pub struct Scene<'a> {
    /// Those that both drivers have; of others nothing is said.
    attributes: &'a [String],
    devices: Vec<Device>,
    /// The one that is asked about now.
    now: usize,
    /// The size of blocks that a power cycle changes to.
    later: Option<u64>,
    /// Whether there may be fewer tags than transfers.
    shallow: bool,
    /// Whether there may be a cache.
    cache: bool,
    /// Whether bad sectors may become good when they are met.
    once: bool,
    /// Whether faults can be asked for.
    faults: bool,
    asked: Vec<Question>,
}

impl<'a> Scene<'a> {
    /// No devices, of which nothing was asked yet.
    pub fn new(attributes: &'a [String], faults: bool, later: Option<u64>) -> Self {
        Self {
            attributes,
            devices: Vec::new(),
            now: 0,
            later,
            shallow: false,
            cache: false,
            once: false,
            faults,
            asked: Vec::new(),
        }
    }

    /// Asks for the driver with other parameters.
    pub fn load(&mut self, parameters: Settings) {
        self.shallow = true;
        let mut words = vec!["load".to_string(), "nr_devices=0".to_string()];
        words.extend(
            parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        self.asked.push(Question::Words(words));
    }

    /// Asks for a device with blocks of a size, with other settings.
    pub fn add(&mut self, name: &'static str, (block, settings): (u64, Settings)) {
        let virt_boundary = settings.iter().any(|(name, _)| *name == "virt_boundary");
        self.now = self.devices.len();
        self.devices.push(Device {
            name,
            block,
            virt_boundary,
        });
        self.ask(&["mkdir", name]);
        self.put("blocksize", &block.to_string());
        for (name, text) in settings {
            self.put(name, &text);
        }
        self.put("power", "1");
    }

    /// Asks for all operations, then for all that the devices have; ends with all questions.
    pub fn play(mut self, operations: Vec<(Index, Operation)>) -> Vec<Question> {
        for (device, operation) in operations {
            self.now = device.index(self.devices.len());
            self.operate(operation);
        }
        for device in 0..self.devices.len() {
            self.now = device;
            self.ask(&["values", self.name()]);
            self.ask(&["disk", self.name()]);
            self.read(0, AREA / 2, Vec::new());
            self.read(AREA / 2, AREA / 2, Vec::new());
            // What was beyond the end, too.
            self.put("power", "0");
            self.put("size", "4");
            self.put("power", "1");
            self.read(AREA, AREA / 2, Vec::new());
            self.read(AREA + AREA / 2, AREA / 2, Vec::new());
        }
        self.asked
    }

    fn device(&self) -> &Device {
        &self.devices[self.now]
    }

    fn name(&self) -> &'static str {
        self.device().name
    }

    fn block(&self) -> u64 {
        self.device().block
    }

    fn ask(&mut self, words: &[&str]) {
        self.asked.push(Question::words(words));
    }

    fn put(&mut self, name: &str, text: &str) {
        self.shallow |= name == "hw_queue_depth";
        self.cache |= name == "cache_size";
        self.once |= name == "badblocks_once";
        if name == "power" || self.attributes.iter().any(|known| known == name) {
            let path = format!("{}/{name}", self.name());
            self.ask(&["put", &path, text]);
        }
    }

    fn read(&mut self, offset: u64, len: u64, cuts: Cuts) {
        self.asked.push(Question::Read {
            disk: self.name().into(),
            offset,
            len: len as usize,
            cuts,
        });
    }

    fn discard(&mut self, offset: u64, len: u64) {
        let (offset, len) = (offset.to_string(), len.to_string());
        self.ask(&["discard", self.name(), &offset, &len]);
    }

    fn zero(&mut self, offset: u64, len: u64) {
        let (offset, len) = (offset.to_string(), len.to_string());
        self.ask(&["zero", self.name(), &offset, &len]);
    }

    /// Offset and length of so many blocks.
    fn place(&self, at: Index, blocks: u64) -> (u64, u64) {
        let len = (blocks * self.block()).min(AREA / 4);
        (
            at.index(((AREA - len) / self.block()) as usize + 1) as u64 * self.block(),
            len,
        )
    }

    /// A disk with a virtual boundary takes no cuts but at pages.
    fn cuts(&self, mut cuts: Cuts) -> Cuts {
        if self.device().virt_boundary {
            for (skip, len) in &mut cuts {
                (*skip, *len) = (0, len.next_multiple_of(PAGE));
            }
        }
        cuts
    }

    /// What the disk takes only by chance.
    fn odd(&mut self, offset: u64, len: u64, what: Odd) {
        match what {
            Odd::Read => self.read(offset, len, Vec::new()),
            Odd::Write => self.asked.push(Question::Write {
                disk: self.name().into(),
                offset,
                len: len as usize,
                seed: 1,
                fua: false,
                cuts: Vec::new(),
            }),
            Odd::Discard => self.discard(offset, len),
            Odd::Zero => self.zero(offset, len),
        }
    }

    fn operate(&mut self, operation: Operation) {
        match operation {
            Operation::Write {
                at,
                blocks,
                seed,
                fua,
                cuts,
            } => {
                let (offset, len) = self.place(at, blocks);
                let cuts = self.cuts(cuts);
                self.asked.push(Question::Write {
                    disk: self.name().into(),
                    offset,
                    len: len as usize,
                    seed,
                    fua,
                    cuts,
                });
            }
            Operation::Read { at, blocks, cuts } => {
                let (offset, len) = self.place(at, blocks);
                let cuts = self.cuts(cuts);
                self.read(offset, len, cuts);
            }
            Operation::Together { parts, first, by } => self.together(parts, first, by),
            Operation::Odd { at, len, what } => self.odd(at, len, what),
            Operation::Discard { at, blocks } => {
                let (offset, len) = self.place(at, blocks);
                self.discard(offset, len);
            }
            Operation::Zero { at, blocks } => {
                let (offset, len) = self.place(at, blocks);
                self.zero(offset, len.min(32768));
            }
            Operation::Flush => self.ask(&["flush", self.name()]),
            Operation::Cycle(change) => {
                self.put("power", "0");
                if let Some((name, text)) = change {
                    self.put(name, &text);
                }
                if let Some(block) = self.later.take() {
                    self.devices[self.now].block = block;
                    self.put("blocksize", &block.to_string());
                }
                self.put("power", "1");
            }
            Operation::Put(name, text) => self.put(name, &text),
            Operation::Bad { add, first, count } => {
                let sign = if add { '+' } else { '-' };
                let last = (first + count).min(BAD.1) - 1;
                let text = format!("{sign}{}-{}", BAD.0 + first.min(last), BAD.0 + last);
                self.put("badblocks", &text);
            }
            Operation::Fault {
                fault,
                victim,
                at,
                blocks,
            } => self.fault(fault, victim, at, blocks),
            Operation::Values => self.ask(&["values", self.name()]),
            Operation::Disk => self.ask(&["disk", self.name()]),
        }
    }
}
