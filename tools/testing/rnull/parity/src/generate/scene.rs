// SPDX-License-Identifier: GPL-2.0

//! What operations on one device come to, as questions.

use super::operation::{Operation, BAD};
use crate::question::{Cuts, Question};
use proptest::sample::Index;

/// The name of the device.
const NAME: &str = "a";

/// Bytes on which operations work: more than fit into the smallest cache.
const AREA: u64 = 2 << 20;

/// A device that is asked about.
pub struct Scene<'a> {
    /// Those that both drivers have; of others nothing is said.
    attributes: &'a [String],
    block: u64,
    /// The size of blocks that a power cycle changes to.
    later: Option<u64>,
    virt_boundary: bool,
    asked: Vec<Question>,
}

impl<'a> Scene<'a> {
    /// A device of which nothing was asked yet.
    pub fn new(attributes: &'a [String], block: u64, later: Option<u64>) -> Self {
        Self {
            attributes,
            block,
            later,
            virt_boundary: false,
            asked: Vec::new(),
        }
    }

    /// Asks for the device, then for all operations, then for all that it has.
    pub fn play(
        mut self,
        beginning: Vec<(&'static str, String)>,
        operations: Vec<Operation>,
    ) -> Vec<Question> {
        self.ask(&["mkdir", NAME]);
        self.put("blocksize", &self.block.to_string());
        for (name, text) in beginning {
            self.virt_boundary |= name == "virt_boundary";
            self.put(name, &text);
        }
        self.put("power", "1");
        for operation in operations {
            self.operate(operation);
        }
        self.ask(&["values", NAME]);
        self.read(0, AREA / 2, Vec::new());
        self.read(AREA / 2, AREA / 2, Vec::new());
        self.asked
    }

    fn ask(&mut self, words: &[&str]) {
        self.asked.push(Question::words(words));
    }

    fn put(&mut self, name: &str, text: &str) {
        if name == "power" || self.attributes.iter().any(|known| known == name) {
            self.ask(&["put", &format!("{NAME}/{name}"), text]);
        }
    }

    fn read(&mut self, offset: u64, len: u64, cuts: Cuts) {
        self.asked.push(Question::Read {
            disk: NAME.into(),
            offset,
            len: len as usize,
            cuts,
        });
    }

    /// Offset and length of so many blocks.
    fn place(&self, at: Index, blocks: u64) -> (u64, u64) {
        let len = (blocks * self.block).min(AREA / 4);
        (
            at.index(((AREA - len) / self.block) as usize + 1) as u64 * self.block,
            len,
        )
    }

    /// A disk with a virtual boundary takes no cuts but at pages.
    fn cuts(&self, cuts: Cuts) -> Cuts {
        if self.virt_boundary {
            Vec::new()
        } else {
            cuts
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
                    disk: NAME.into(),
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
            Operation::Odd {
                at,
                len,
                write: true,
            } => self.asked.push(Question::Write {
                disk: NAME.into(),
                offset: at,
                len: len as usize,
                seed: 1,
                fua: false,
                cuts: Vec::new(),
            }),
            Operation::Odd {
                at,
                len,
                write: false,
            } => self.read(at, len, Vec::new()),
            Operation::Discard { at, blocks } => {
                let (offset, len) = self.place(at, blocks);
                self.ask(&["discard", NAME, &offset.to_string(), &len.to_string()]);
            }
            Operation::Zero { at, blocks } => {
                let (offset, len) = self.place(at, blocks);
                self.ask(&[
                    "zero",
                    NAME,
                    &offset.to_string(),
                    &len.min(32768).to_string(),
                ]);
            }
            Operation::Flush => self.ask(&["flush", NAME]),
            Operation::Cycle(change) => {
                self.put("power", "0");
                if let Some((name, text)) = change {
                    self.put(name, &text);
                }
                if let Some(block) = self.later.take() {
                    self.block = block;
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
            Operation::Values => self.ask(&["values", NAME]),
        }
    }
}
