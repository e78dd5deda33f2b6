// SPDX-License-Identifier: GPL-2.0

//! Operations on a device, in units that fit any block size.

use super::{
    scene::{Fault, Victim},
    settings::change,
};
use crate::question::{By, Cuts};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, Index},
};

/// How many transfers may be in the air at once.
pub const PARTS: usize = 8;

/// The first sector that may be bad, and how many: behind what is read at power-on, in few enough
/// that the kernel can tell them as one range.
pub const BAD: (u64, u64) = (256, 400);

/// What is done to a part of the disk while others are done to others.
#[derive(Clone, Debug)]
pub struct Part {
    /// Of several disks, which.
    pub disk: Index,
    pub at: Index,
    pub blocks: u64,
    /// What to write, durably or not.
    pub write: Option<(u32, bool)>,
    pub cuts: Cuts,
}

/// What is done where it does not fit.
#[derive(Clone, Copy, Debug)]
pub enum Odd {
    Read,
    Write,
    Discard,
    Zero,
}

/// An operation.
#[derive(Clone, Debug)]
pub enum Operation {
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
    /// Several in the air at once, each in a part of the disk of its own.
    Together {
        parts: Vec<Part>,
        /// Where the first of them is.
        first: usize,
        by: By,
    },
    /// Where no block begins, or beyond the end.
    Odd {
        at: u64,
        len: u64,
        what: Odd,
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
    /// A fault that is certain.
    Fault {
        fault: Fault,
        victim: Victim,
        at: Index,
        blocks: u64,
    },
    Values,
    /// What sysfs shows.
    Disk,
}

fn cuts() -> impl Strategy<Value = Cuts> {
    // In twos, as the limits of the disks allow.
    let piece = (0..2048usize, 1..3000usize).prop_map(|(skip, len)| (skip * 2, len * 2));
    let whole = (0..8usize, 1..9usize).prop_map(|(skip, len)| (skip * 512, len * 512));
    prop_oneof![3 => Just(Vec::new()), 1 => vec(piece, 1..4), 1 => vec(whole, 1..4)]
}

fn part() -> impl Strategy<Value = Part> {
    let write = (1..200u32, prop::bool::weighted(0.2));
    let blocks = prop_oneof![4 => 1..9u64, 1 => 1..500u64];
    let all = (
        any::<Index>(),
        any::<Index>(),
        blocks,
        option::of(write),
        cuts(),
    );
    all.prop_map(|(disk, at, blocks, write, cuts)| Part {
        disk,
        at,
        blocks,
        write,
        cuts,
    })
}

fn fault() -> impl Strategy<Value = Operation> {
    let fault = prop_oneof![
        3 => Just(Fault::Lost),
        2 => (1..6u32).prop_map(Fault::SentBack),
        1 => Just(Fault::Saved),
        1 => Just(Fault::NoQueue),
    ];
    let victim = prop_oneof![
        3 => Just(Victim::Read),
        3 => (1..200u32).prop_map(Victim::Write),
        1 => Just(Victim::Discard),
        1 => Just(Victim::Flush),
    ];
    let all = (fault, victim, any::<Index>(), 1..9u64);
    all.prop_map(|(fault, victim, at, blocks)| Operation::Fault {
        fault,
        victim,
        at,
        blocks,
    })
}

fn odd() -> impl Strategy<Value = Operation> {
    // At the beginning, or about one of the ends that disks have.
    let at = (0..5000u64, select(&[0u64, 1, 2, 3, 4][..]))
        .prop_map(|(at, size)| ((size << 20) + at).saturating_sub(2500));
    // Half of them at whole sectors, which is all that the kernel asks for at first.
    let unit = select(&[1u64, 512][..]);
    let what = select(&[Odd::Read, Odd::Write, Odd::Discard, Odd::Zero][..]);
    (at, 1..5000u64, unit, what).prop_map(|(at, len, unit, what)| Operation::Odd {
        at: at / unit * unit,
        len: (len / unit * unit).max(unit),
        what,
    })
}

/// Any operation.
pub fn operation() -> impl Strategy<Value = Operation> {
    let blocks = || prop_oneof![4 => 1..9u64, 1 => 1..300u64];
    let at = any::<Index>;
    prop_oneof![
        8 => (at(), blocks(), 1..200u32, prop::bool::weighted(0.2), cuts()).prop_map(
            |(at, blocks, seed, fua, cuts)| Operation::Write { at, blocks, seed, fua, cuts }),
        8 => (at(), blocks(), cuts()).prop_map(|(at, blocks, cuts)| Operation::Read { at, blocks, cuts }),
        5 => (vec(part(), 1..=PARTS), 0..PARTS, select(&[By::Aio, By::Aio, By::Ring, By::Polling, By::Polling][..])).prop_map(
            |(parts, first, by)| Operation::Together { parts, first, by }),
        2 => odd(),
        3 => (at(), blocks()).prop_map(|(at, blocks)| Operation::Discard { at, blocks }),
        1 => (at(), 1..9u64).prop_map(|(at, blocks)| Operation::Zero { at, blocks }),
        2 => Just(Operation::Flush),
        2 => option::of(change()).prop_map(Operation::Cycle),
        3 => change().prop_map(|(name, text)| Operation::Put(name, text)),
        2 => (any::<bool>(), 0..BAD.1, 1..20u64).prop_map(|(add, first, count)| Operation::Bad { add, first, count }),
        4 => fault(),
        1 => Just(Operation::Values),
        1 => Just(Operation::Disk),
    ]
}
