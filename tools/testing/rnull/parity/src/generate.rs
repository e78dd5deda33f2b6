// SPDX-License-Identifier: GPL-2.0

//! Makes up what to ask: a device, then operations on it.

use crate::question::{Cuts, Question};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, Index},
};

/// The name of the device.
const NAME: &str = "a";

/// Bytes on which operations work: more than fit into the smallest cache.
const AREA: u64 = 2 << 20;

/// The first sector that may be bad, and how many: behind what is read at power-on, in few enough
/// that the kernel can tell them as one range.
const BAD: (u64, u64) = (256, 400);

/// An operation in units that fit any block size.
#[derive(Clone, Debug)]
enum Operation {
    Write {
        at: Index,
        blocks: u64,
        seed: u32,
        fua: bool,
        cuts: Cuts,
    },
    Read {
        at: Index,
        blocks: u64,
        cuts: Cuts,
    },
    /// Where no block begins, or beyond the end.
    Odd {
        at: u64,
        len: u64,
        write: bool,
    },
    Discard {
        at: Index,
        blocks: u64,
    },
    Zero {
        at: Index,
        blocks: u64,
    },
    Flush,
    /// Off, then on, with a change in between.
    Cycle(Option<(&'static str, String)>),
    Put(&'static str, String),
    Bad {
        add: bool,
        first: u64,
        count: u64,
    },
    Values,
}

/// The attributes that may be changed while operations go on, each with texts that null_blk
/// survives.
fn change() -> impl Strategy<Value = (&'static str, String)> {
    let number = |values: &'static [u64]| select(values).prop_map(|n| n.to_string());
    let flag = select(&["0", "1", "y", "N", "2", "\\e"][..]).prop_map(String::from);
    let odd = select(
        &[
            "abc",
            "-1",
            "\\s1",
            "0x10\\n",
            "99999999999999999999",
            "\\e",
        ][..],
    );
    prop_oneof![
        4 => (select(&["rotational", "no_sched", "badblocks_once", "badblocks_partial_io", "fua", "blocking", "discard"][..]), flag),
        2 => (Just("submit_queues"), number(&[0, 1, 2, 3, 4, 5])),
        2 => (Just("poll_queues"), number(&[0, 1, 2])),
        1 => (Just("irqmode"), number(&[0, 1, 2, 3])),
        1 => (Just("queue_mode"), number(&[0, 1, 2, 7])),
        1 => (Just("hw_queue_depth"), number(&[0, 1, 2, 64, 20000])),
        // What more than 128 pages take is divided by where these pages are, too.
        1 => (Just("max_sectors"), number(&[0, 128, 130, 255, 900])),
        1 => (Just("completion_nsec"), number(&[0, 1, 1000])),
        1 => (select(&["size", "submit_queues", "irqmode", "hw_queue_depth", "completion_nsec"][..]), odd.prop_map(String::from)),
    ]
}

fn cuts() -> impl Strategy<Value = Cuts> {
    // In twos, as the limits of the disks allow.
    let piece = (0..2048usize, 1..3000usize).prop_map(|(skip, len)| (skip * 2, len * 2));
    let whole = (0..8usize, 1..9usize).prop_map(|(skip, len)| (skip * 512, len * 512));
    prop_oneof![3 => Just(Vec::new()), 1 => vec(piece, 1..4), 1 => vec(whole, 1..4)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let blocks = || prop_oneof![4 => 1..9u64, 1 => 1..300u64];
    let at = any::<Index>;
    prop_oneof![
        8 => (at(), blocks(), 1..200u32, prop::bool::weighted(0.2), cuts()).prop_map(
            |(at, blocks, seed, fua, cuts)| Operation::Write { at, blocks, seed, fua, cuts }),
        8 => (at(), blocks(), cuts()).prop_map(|(at, blocks, cuts)| Operation::Read { at, blocks, cuts }),
        1 => (0..5000u64, 1..5000u64, any::<bool>(), any::<bool>()).prop_map(|(at, len, write, end)| {
            Operation::Odd { at: if end { (4 << 20) - 2500 + at } else { at }, len, write }
        }),
        3 => (at(), blocks()).prop_map(|(at, blocks)| Operation::Discard { at, blocks }),
        1 => (at(), 1..9u64).prop_map(|(at, blocks)| Operation::Zero { at, blocks }),
        2 => Just(Operation::Flush),
        2 => option::of(change()).prop_map(Operation::Cycle),
        3 => change().prop_map(|(name, text)| Operation::Put(name, text)),
        2 => (any::<bool>(), 0..BAD.1, 1..20u64).prop_map(|(add, first, count)| Operation::Bad { add, first, count }),
        1 => Just(Operation::Values),
    ]
}

/// The settings with which a device begins, besides the size of its blocks.
fn beginning() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let one = |name: &'static str| (Just(name), select(&["1", "0"][..]).prop_map(String::from));
    let cache = (
        Just("cache_size"),
        select(&["1", "0"][..]).prop_map(String::from),
    );
    (
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.4),
        vec(prop_oneof![2 => one("discard"), 1 => one("virt_boundary"), 1 => one("shared_tag_bitmap"), 1 => cache], 0..4),
        vec(change(), 0..4),
    )
        .prop_map(|(backed, discard, more, changes)| {
            let mut all = vec![("size", "4".to_string())];
            all.extend(backed.then(|| ("memory_backed", "1".into())));
            all.extend(discard.then(|| ("discard", "1".into())));
            all.extend(more);
            all.extend(changes.into_iter().filter(|(name, _)| *name != "size"));
            all
        })
}

/// Questions about one device, in their order.
pub fn questions(attributes: Vec<String>) -> impl Strategy<Value = Vec<Question>> {
    let block = (0..8u32).prop_map(|shift| 512u64 << shift);
    let later =
        prop_oneof![9 => Just(None), 1 => (0..8u32).prop_map(|shift| Some(512u64 << shift))];
    (block, later, beginning(), vec(operation(), 1..40)).prop_map(
        move |(block, later, beginning, operations)| {
            Scene {
                attributes: &attributes,
                block,
                later,
                virt_boundary: false,
                asked: Vec::new(),
            }
            .play(beginning, operations)
        },
    )
}

struct Scene<'a> {
    /// Those that both drivers have; of others nothing is said.
    attributes: &'a [String],
    block: u64,
    /// The size of blocks that a power cycle changes to.
    later: Option<u64>,
    virt_boundary: bool,
    asked: Vec<Question>,
}

impl Scene<'_> {
    fn play(
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
