// SPDX-License-Identifier: GPL-2.0

//! The mapping of CPUs to hardware queues, for each type of queue.
//!
//! The indices of the queues of one type follow those of the previous type. [`QueueCounts`] has the
//! number of queues of each type. The block layer spreads the CPUs over them, or the driver has
//! [`CpuMaps`] for them.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::cpu_map::{
    is_possible,
    CpuMaps, //
};
use crate::{
    bindings,
    cpu::nr_cpu_ids,
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
};
use core::{
    mem,
    ops::Range,
    slice, //
};

/// The maximum number of hardware queues. C packs their index into 16 bits.
const MAX_QUEUES: u32 = 1 << 16;

/// Returns the number of online NUMA nodes, which is 1 without NUMA.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{online_nodes, QueueCounts};
///
/// // A queue for each node.
/// let counts = QueueCounts { default: online_nodes(), ..QueueCounts::default() };
/// assert_ne!(counts.default, 0);
/// ```
pub fn online_nodes() -> u32 {
    // SAFETY: The helper only reads a number.
    unsafe { bindings::blk_online_nodes() }
}

/// The type of a hardware queue: C's `enum hctx_type`.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::{HwQueue, Operations, QueueType};
///
/// fn is_polled<T: Operations>(hw: HwQueue<'_, T>) -> bool {
///     hw.queue_type() == QueueType::Poll
/// }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueType {
    /// For requests that no queue of another type handles.
    Default,
    /// For reads.
    Read,
    /// For requests whose completion is polled.
    Poll,
}

impl QueueType {
    /// Converts a value of `enum hctx_type`.
    #[inline]
    pub(super) fn from_raw(kind: c_ushort) -> Self {
        match c_uint::from(kind) {
            bindings::hctx_type_HCTX_TYPE_READ => Self::Read,
            bindings::hctx_type_HCTX_TYPE_POLL => Self::Poll,
            _ => Self::Default,
        }
    }
}

/// The number of hardware queues of each type.
///
/// Each count is reduced to the number of possible CPUs, so that each queue serves a CPU. C's kyber
/// scheduler frees an uninitialized pointer when it leaves a queue that serves none ("sbitmap:
/// initialize the allocation hint of an empty bitmap"). The counts are invalid if their sum exceeds
/// 65536, for which only `default` is reduced before.
///
/// # Examples
///
/// ```
/// use kernel::block::mq::QueueCounts;
///
/// let counts = QueueCounts { default: 2, poll: 1, ..QueueCounts::default() };
/// assert_eq!(counts.total(), Some(3));
/// assert_eq!(QueueCounts::default().total(), Some(1));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueueCounts {
    /// Queues for all requests that the other types do not handle: at least one.
    pub default: u32,
    /// Queues for reads only.
    pub read: u32,
    /// Queues that are polled.
    pub poll: u32,
}

/// One queue for everything.
impl Default for QueueCounts {
    fn default() -> Self {
        Self {
            default: 1,
            read: 0,
            poll: 0,
        }
    }
}

impl QueueCounts {
    /// The number of maps if each type has one.
    pub(super) const MAX_MAPS: u32 = 3;

    /// Returns the total number of queues, or [`None`] if it overflows.
    pub const fn total(self) -> Option<u32> {
        match self.default.checked_add(self.read) {
            Some(sum) => sum.checked_add(self.poll),
            None => None,
        }
    }

    /// Returns the counts that are in effect with `cpus` possible CPUs, for a tag set with the
    /// first `maps` maps.
    pub(super) fn validate(self, cpus: u32, maps: u32) -> Result<Self> {
        let default = self.default.min(cpus);
        if default == 0 || self.maps() > maps {
            return Err(EINVAL);
        }
        match (Self { default, ..self }).total() {
            Some(1..=MAX_QUEUES) => Ok(Self {
                default,
                read: self.read.min(cpus),
                poll: self.poll.min(cpus),
            }),
            _ => Err(EINVAL),
        }
    }

    /// Returns the number of maps that a tag set needs, in the order default, read, poll.
    pub(super) const fn maps(self) -> u32 {
        match (self.read, self.poll) {
            (0, 0) => 1,
            (_, 0) => 2,
            (_, _) => Self::MAX_MAPS,
        }
    }

    /// Returns the number of queues in map `map`, and the index of the first.
    fn span(self, map: usize) -> (u32, u32) {
        match map {
            0 => (self.default, 0),
            1 => (self.read, self.default),
            _ => (self.poll, self.default.saturating_add(self.read)),
        }
    }

    /// Returns the counts to map when the block layer has prepared `queues` hardware queues: the
    /// requested ones, the previous ones if the request failed, or otherwise only default queues.
    fn choose(queues: u32, requested: Self, previous: Self) -> (Self, Origin) {
        let default = Self {
            default: queues,
            read: 0,
            poll: 0,
        };
        [(requested, Origin::Requested), (previous, Origin::Previous)]
            .into_iter()
            .find(|(counts, _)| counts.total() == Some(queues))
            .unwrap_or((default, Origin::Fallback))
    }
}

/// Maps each CPU to the queue that `table` has for it, among `queues` queues from `offset` on.
fn map_by_table(map: &[Atomic<u32>], offset: u32, table: &[u32], queues: u32) {
    for (entry, queue) in map.iter().zip(table) {
        // The entries are less; no other value may get to C.
        entry.store(offset + queue.min(&(queues - 1)), Relaxed);
    }
}

/// Maps the CPUs to `queues` in turn, if one of these serves no possible CPU.
///
/// `blk_mq_map_queues()` maps all CPUs to the first queue when it is out of memory.
fn map_unserved_queues(map: &[Atomic<u32>], queues: Range<u32>, possible: impl Fn(usize) -> bool) {
    let serves = |queue| {
        let mut entries = map.iter().enumerate();
        entries.any(|(cpu, entry)| entry.load(Relaxed) == queue && possible(cpu))
    };
    if queues.clone().all(serves) {
        return;
    }
    let entries = map.iter().enumerate().filter(|(cpu, _)| possible(*cpu));
    for ((_, entry), queue) in entries.zip(queues.cycle()) {
        entry.store(queue, Relaxed);
    }
}

/// Counts that can be read while they change. All of them are packed into a 64-bit atomic.
struct AtomicCounts(Atomic<u64>);

impl AtomicCounts {
    /// The number of bits of each count.
    const BITS: u32 = 21;

    fn new(counts: QueueCounts) -> Self {
        Self(Atomic::new(Self::pack(counts)))
    }

    fn pack(counts: QueueCounts) -> u64 {
        const_assert!(MAX_QUEUES < 1 << AtomicCounts::BITS);
        [counts.poll, counts.read, counts.default]
            .into_iter()
            .fold(0, |word, count| word << Self::BITS | u64::from(count))
    }

    // Relaxed, because no other memory access depends on the value. Writers are serialised by C's
    // `tag_list_lock`, or by a lock around it.
    fn load(&self) -> QueueCounts {
        let word = self.0.load(Relaxed);
        let count = |index: u32| (word >> (index * Self::BITS)) as u32 & ((1 << Self::BITS) - 1);
        QueueCounts {
            default: count(0),
            read: count(1),
            poll: count(2),
        }
    }

    fn store(&self, counts: QueueCounts) {
        self.0.store(Self::pack(counts), Relaxed);
    }
}

/// Where the queues that are in effect come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Origin {
    /// The latest request.
    Requested,
    /// Those that were in effect before.
    Previous,
    /// Neither, as C could not prepare that many.
    Fallback,
}

/// The tables of a tag set: those requested, and those in effect at the time of the request.
struct Tables {
    requested: CpuMaps,
    previous: CpuMaps,
    /// Which of them the maps were last built from.
    origin: Origin,
}

/// The counts of a tag set: those requested, those in effect at the time of the request, and those
/// that the maps were last built from; with the tables for them.
#[pin_data]
pub(super) struct QueueMaps {
    requested: AtomicCounts,
    previous: AtomicCounts,
    mapped: AtomicCounts,
    #[pin]
    tables: Mutex<Tables>,
}

/// The name of a lock class, which has a single address although code that uses it may be a part of
/// several modules.
static TABLES_NAME: &CStr = c"block_mq_tables";

impl QueueMaps {
    pub(super) fn new(counts: QueueCounts, tables: CpuMaps) -> impl PinInit<Self> {
        pin_init!(Self {
            requested: AtomicCounts::new(counts),
            previous: AtomicCounts::new(counts),
            mapped: AtomicCounts::new(counts),
            tables <- Mutex::new(
                Tables {
                    requested: tables,
                    previous: CpuMaps::default(),
                    origin: Origin::Requested,
                },
                TABLES_NAME,
                static_lock_class!(),
            ),
        })
    }

    /// Returns the counts that are in effect.
    pub(super) fn mapped(&self) -> QueueCounts {
        self.mapped.load()
    }

    /// Sets the counts and tables that the next calls of [`Self::apply`] will map, and makes the
    /// present ones the fallback.
    ///
    /// [`Self::commit`] follows before the next request. A lock around both serialises requests.
    pub(super) fn request(&self, counts: QueueCounts, tables: CpuMaps) {
        self.previous.store(self.mapped.load());
        self.requested.store(counts);
        let mut guard = self.tables.lock();
        guard.previous = mem::replace(&mut guard.requested, tables);
        guard.origin = Origin::Previous;
    }

    /// Makes what is in effect that which the next calls of [`Self::apply`] will map. Returns
    /// whether it is what was requested.
    pub(super) fn commit(&self) -> bool {
        let mapped = self.mapped.load();
        let mut guard = self.tables.lock();
        // C does nothing if only the number of queues could change, and does not.
        let had_tables = !guard.requested.is_empty() || !guard.previous.is_empty();
        let unchanged = mapped == self.requested.load() && !had_tables;
        let previous = mem::take(&mut guard.previous);
        match guard.origin {
            Origin::Requested => (),
            Origin::Previous => guard.requested = previous,
            Origin::Fallback => guard.requested = CpuMaps::default(),
        }
        self.requested.store(mapped);
        self.previous.store(mapped);
        unchanged || guard.origin == Origin::Requested
    }

    /// Returns whether queue `index` is among those requested.
    pub(super) fn is_requested(&self, index: u32) -> bool {
        self.requested
            .load()
            .total()
            .is_some_and(|total| index < total)
    }

    /// Builds the maps of `set`.
    ///
    /// # Safety
    ///
    /// `set` is valid, has as many maps as `nr_maps` says, and the caller may write them.
    pub(super) unsafe fn apply(&self, set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: By the safety requirements.
        let queues = unsafe { (*set).nr_hw_queues };
        // SAFETY: By the safety requirements.
        let maps = unsafe { (*set).nr_maps } as usize;
        // SAFETY: By the safety requirements, for the field projection.
        let first = unsafe { &raw mut (*set).map }.cast::<bindings::blk_mq_queue_map>();
        let mut tables = self.tables.lock();
        let (counts, origin) =
            QueueCounts::choose(queues, self.requested.load(), self.previous.load());
        tables.origin = origin;
        for index in 0..maps.min(3) {
            let (queues, offset) = counts.span(index);
            let table = match origin {
                Origin::Requested => tables.requested.entries(index, queues),
                Origin::Previous => tables.previous.entries(index, queues),
                Origin::Fallback => None,
            };
            // SAFETY: The tag set has an array of three maps.
            let map = unsafe { first.add(index) };
            // SAFETY: By the safety requirements.
            unsafe { (*map).nr_queues = queues };
            // SAFETY: By the safety requirements.
            unsafe { (*map).queue_offset = offset };
            if queues > 0 {
                if table.is_none() {
                    // SAFETY: `nr_maps` includes the map, so its array has an element for each CPU.
                    unsafe { bindings::blk_mq_map_queues(map) };
                }
                // SAFETY: By the safety requirements.
                let entries = unsafe { (*map).mq_map };
                // SAFETY: The map has an entry for each CPU id. CPU notifiers may read it at the
                // same time, but by the safety requirements, no other CPU writes it. An atomic has
                // the representation of its type.
                let entries = unsafe {
                    slice::from_raw_parts(entries.cast::<Atomic<u32>>(), nr_cpu_ids() as usize)
                };
                if let Some(table) = table {
                    map_by_table(entries, offset, table, queues);
                }
                map_unserved_queues(entries, offset..offset.saturating_add(queues), is_possible);
            }
        }
        self.mapped.store(counts);
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_mq_map)]
mod tests {
    use super::*;

    const fn counts(default: u32, read: u32, poll: u32) -> QueueCounts {
        QueueCounts {
            default,
            read,
            poll,
        }
    }

    #[test]
    fn kinds_follow_each_other() {
        let counts = counts(4, 2, 3);
        assert_eq!(counts.span(0), (4, 0));
        assert_eq!(counts.span(1), (2, 4));
        assert_eq!(counts.span(2), (3, 6));
        assert_eq!(counts.total(), Some(9));
    }

    #[test]
    fn counts_are_validated() {
        assert_eq!(counts(9, 0, 1).validate(4, 3), Ok(counts(4, 0, 1)));
        assert_eq!(counts(0, 0, 1).validate(4, 3), Err(EINVAL));
        assert_eq!(counts(1, 0, 1).validate(4, 2), Err(EINVAL));
        assert_eq!(counts(1, 1, 0).validate(4, 1), Err(EINVAL));
        assert_eq!(counts(1, 6, 5).validate(4, 3), Ok(counts(1, 4, 4)));
        assert_eq!(counts(1, u32::MAX, 1).validate(4, 3), Err(EINVAL));
        assert_eq!(counts(1, 0, MAX_QUEUES).validate(4, 3), Err(EINVAL));
        assert_eq!(
            counts(9, 0, MAX_QUEUES - 4).validate(4, 3),
            Ok(counts(4, 0, 4))
        );
    }

    #[test]
    fn each_queue_serves_a_cpu() {
        let check = |before: [u32; 5], possible: fn(usize) -> bool, after: [u32; 5]| {
            let map = before.map(Atomic::new);
            map_unserved_queues(&map, 2..4, possible);
            assert_eq!(map.map(|entry| entry.load(Relaxed)), after);
        };
        // What C makes of it when it is out of memory.
        check([2, 2, 2, 2, 2], |cpu| cpu % 2 == 0, [2, 2, 3, 2, 2]);
        // A map that is complete stays.
        check([3, 3, 2, 2, 2], |_| true, [3, 3, 2, 2, 2]);
        // An entry of a CPU that is not possible does not count.
        check([2, 3, 2, 2, 2], |cpu| cpu != 1, [2, 3, 3, 2, 3]);
    }

    #[test]
    fn a_failed_change_falls_back() {
        let (requested, previous) = (counts(4, 0, 1), counts(2, 0, 1));
        let choose = |queues| QueueCounts::choose(queues, requested, previous);
        assert_eq!(choose(5), (requested, Origin::Requested));
        assert_eq!(choose(3), (previous, Origin::Previous));
        assert_eq!(choose(1), (counts(1, 0, 0), Origin::Fallback));
    }

    #[test]
    fn counts_fit_into_a_word() {
        let shared = AtomicCounts::new(QueueCounts::default());
        for counts in [
            counts(1, 2, 3),
            counts(MAX_QUEUES, 0, 0),
            counts(1, MAX_QUEUES, 0),
            counts(0, 1, MAX_QUEUES),
        ] {
            shared.store(counts);
            assert_eq!(shared.load(), counts);
        }
    }

    #[test]
    fn polling_needs_all_maps() {
        assert_eq!(counts(1, 0, 0).maps(), 1);
        assert_eq!(counts(1, 1, 0).maps(), 2);
        assert_eq!(counts(1, 0, 1).maps(), 3);
        assert_eq!(counts(1, 1, 1).maps(), 3);
    }
}
