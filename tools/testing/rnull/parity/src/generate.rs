// SPDX-License-Identifier: GPL-2.0

//! Strategies for commands: a device, then operations on it, in units that fit any block size.

mod script;
mod settings;
mod zoned;

use crate::{
    command::{Command, Cuts, Data, Engine},
    model::System,
};
use proptest::{
    bool::weighted,
    collection::vec,
    option,
    prelude::*,
    sample::{select, Index},
};
use proptest_derive::Arbitrary;
use script::Script;
use settings::{change, initial, shared_tags, Setting};
use zoned::ZoneOperation;

/// The most transfers of a batch.
const PARTS: usize = 8;

/// The first sector that may be bad, and how many: behind what is read at power-on, in few enough
/// that the kernel can list them as one range.
const BAD: (u64, u64) = (256, 400);

/// What a request does.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Io {
    #[proptest(weight = 8)]
    Read,
    #[proptest(weight = 8)]
    Write(#[proptest(strategy = "data()")] Data),
    #[proptest(weight = 3)]
    Discard,
    Zero,
    #[proptest(weight = 2)]
    Flush,
}

/// Blocks of a disk.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Place {
    at: Index,
    #[proptest(strategy = "prop_oneof![4 => 1..9u64, 1 => 1..400u64]")]
    blocks: u64,
    /// What becomes of that on a zoned disk.
    in_zone: InZone,
}

/// Where blocks of a zone are.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum InZone {
    #[proptest(weight = 10)]
    AtPointer,
    /// At the write pointer, as many as there is room for.
    #[proptest(weight = 2)]
    ToCapacity,
    /// At the write pointer, more than there is room for.
    BeyondCapacity,
    /// At the write pointer; the block layer is not told of it if that fails.
    Blind,
    Elsewhere,
}

/// A transfer of a batch.
#[derive(Arbitrary, Clone, Debug)]
struct Part {
    /// Of several disks, which.
    disk: Index,
    place: Place,
    #[proptest(strategy = "option::of(data())")]
    data: Option<Data>,
    #[proptest(strategy = "cuts()")]
    cuts: Cuts,
}

/// An injected fault that is certain.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Fault {
    #[proptest(weight = 3)]
    Timeout,
    /// So many times.
    #[proptest(weight = 2)]
    Requeue(#[proptest(strategy = "1..6u32")] u32),
    /// A request that would time out is requeued, which saves it.
    RequeueAndTimeout,
    InitHctx,
}

#[derive(Arbitrary, Clone, Debug)]
enum Operation {
    #[proptest(weight = 22)]
    Io(Io, Place, #[proptest(strategy = "cuts()")] Cuts),
    /// Transfers in flight together, each in a part of the disk of its own.
    #[proptest(weight = 5)]
    Batch {
        #[proptest(strategy = "vec(any::<Part>(), 1..=PARTS)")]
        parts: Vec<Part>,
        /// Where the first of them is.
        #[proptest(strategy = "0..PARTS")]
        first: usize,
        #[proptest(strategy = "engine()")]
        engine: Engine,
    },
    /// Offset and length where no block begins, or beyond the end.
    #[proptest(weight = 2)]
    Misfit(Io, #[proptest(strategy = "misfit()")] (u64, u64)),
    /// Off, then on, with a change in between.
    #[proptest(weight = 2)]
    PowerCycle(#[proptest(strategy = "option::of(change())")] Option<Setting>),
    #[proptest(weight = 3)]
    Set(#[proptest(strategy = "change()")] Setting),
    #[proptest(weight = 2)]
    BadBlocks {
        add: bool,
        #[proptest(strategy = "0..BAD.1")]
        first: u64,
        #[proptest(strategy = "1..20u64")]
        count: u64,
    },
    /// On a zoned disk.
    #[proptest(weight = 24)]
    Zone(ZoneOperation, Index),
    /// A request that meets a fault.
    #[proptest(weight = 4)]
    Fault(Fault, Io, Place),
    Attributes,
    /// What sysfs shows.
    Disk,
}

/// Commands to a driver: about one device, or about two that share their tags; with faults, if the
/// drivers can inject them.
pub fn commands(
    attributes: Vec<String>,
    faults: bool,
    system: System,
) -> impl Strategy<Value = Vec<Command>> {
    let block = || (0..8u32).prop_map(|shift| 512u64 << shift);
    let other_block = option::weighted(0.1, block());
    let first = (block(), initial());
    let second = option::weighted(0.1, (shared_tags(), (block(), initial())));
    let operations = vec(any::<(Index, Operation)>(), 1..40);
    let all = (first, second, other_block, operations);
    all.prop_map(move |(first, second, other_block, operations)| {
        let mut script = Script::new(&attributes, faults, system, other_block);
        let (parameters, second) = second.unzip();
        if let Some(parameters) = parameters {
            script.load(parameters);
        }
        script.add("a", first);
        if let Some(second) = second {
            script.add("b", second);
        }
        script.finish(operations)
    })
}

fn cuts() -> impl Strategy<Value = Cuts> {
    // Even, as the limits of the disks allow.
    let piece = (0..2048usize, 1..3000usize).prop_map(|(skip, len)| (skip * 2, len * 2));
    let sectors = (0..8usize, 1..9usize).prop_map(|(skip, len)| (skip * 512, len * 512));
    prop_oneof![3 => Just(Vec::new()), 1 => vec(piece, 1..4), 1 => vec(sectors, 1..4)]
}

fn data() -> impl Strategy<Value = Data> {
    (1..200u32, weighted(0.2)).prop_map(|(seed, fua)| Data { seed, fua })
}

fn engine() -> impl Strategy<Value = Engine> {
    select(&[Engine::Threads, Engine::IoUring, Engine::Polled][..])
}

fn misfit() -> impl Strategy<Value = (u64, u64)> {
    // At the beginning, or about one of the ends that disks have.
    let at = (0..5000u64, 0..5u64)
        .prop_map(|(at, megabytes)| ((megabytes << 20) + at).saturating_sub(2500));
    // Half of them at whole sectors, which is all that the kernel checks at first.
    let unit = select(&[1u64, 512][..]);
    (at, 1..5000u64, unit)
        .prop_map(|(at, len, unit)| (at / unit * unit, (len / unit * unit).max(unit)))
}
