// SPDX-License-Identifier: GPL-2.0

//! The misuse of folios, sequence counters, arrays, RCU pointers.
//!
//! All callbacks use the same containers, so that readers and writers meet. What an array has at
//! an index tells the index, so that a value that was freed too early is noticed.

use super::{
    call_site::CallSite,
    extremes,
    rng::Rng, //
};
use core::mem::forget;
use kernel::{
    alloc::{
        flags::{
            __GFP_HIGHMEM,
            __GFP_NOWARN,
            __GFP_ZERO, //
        },
        Flags,
    },
    block::bio::{
        Direction,
        FromDisk,
        MappedBytes,
        Segments,
        ToDisk, //
    },
    folio::{
        Folio,
        FolioBox, //
    },
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::{
        rcu,
        rcu_box::RcuBox,
        rcu_free::{
            RcuBatch,
            Removed, //
        },
        rcu_ptr::RcuPtr,
        seqcount::SeqCount, //
    },
    warn_on,
    xarray::{
        Entry,
        Guard,
        Locked,
        Rcu,
        XArray, //
    },
};

/// The number of indices that most uses choose from.
const INDICES: u64 = 256;

/// The private word of a folio.
pub(crate) type State = SeqCount<8>;

/// A value that knows its index, and notices when it is dropped twice.
pub(crate) struct Value {
    index: usize,
    canary: u64,
}

const CANARY: u64 = 0x5afe_c0de_5afe_c0de;

impl Value {
    fn new(index: usize) -> Self {
        Self {
            index,
            canary: CANARY,
        }
    }

    fn check(&self, index: usize) {
        warn_on!(self.canary != CANARY || self.index != index);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        warn_on!(self.canary != CANARY);
        self.canary = 0;
    }
}

/// The containers.
#[pin_data]
pub(crate) struct Memory {
    #[pin]
    folios: XArray<FolioBox<State>>,
    #[pin]
    numbers: XArray<RcuBox<usize>>,
    #[pin]
    values: XArray<KBox<Value>, Locked>,
    /// Locked after `values`.
    #[pin]
    moved: XArray<KBox<Value>, Locked>,
    folio: RcuPtr<FolioBox<State>>,
    number: RcuPtr<RcuBox<[usize; 4]>>,
    count: SeqCount<4>,
}

/// Returns an index, which many others choose, too.
fn index(rng: &mut Rng) -> usize {
    match rng.below(16) {
        0 => extremes::edge(rng) as usize,
        1 => usize::MAX - rng.below(3) as usize,
        2 => 0,
        _ => rng.below(INDICES) as usize,
    }
}

/// Returns an offset or a length of bytes, near a border of the first pages.
fn bytes(rng: &mut Rng) -> usize {
    match rng.below(8) {
        0 => extremes::edge(rng) as usize,
        1 => usize::MAX - rng.below(5000) as usize,
        2..=4 => ((rng.below(5) as usize) << 12)
            .wrapping_add(rng.below(5) as usize)
            .wrapping_sub(2),
        _ => rng.below(PAGE_SIZE as u64 + 1) as usize,
    }
}

/// Returns flags for an allocation that does not wait, some of them without a meaning for it.
fn flags(rng: &mut Rng) -> Flags {
    match rng.below(8) {
        0 => GFP_ATOMIC | __GFP_NOWARN,
        1 => GFP_NOWAIT | __GFP_ZERO,
        2 => GFP_NOWAIT | __GFP_HIGHMEM,
        3 => GFP_NOWAIT | __GFP_HIGHMEM | __GFP_ZERO,
        4 => !GFP_KERNEL,
        5 => __GFP_NOWARN,
        _ => GFP_NOWAIT,
    }
}

/// Allocates a folio of any order.
fn folio(rng: &mut Rng) -> Result<FolioBox<State>> {
    let order = match rng.below(12) {
        0 => rng.below(12) as u32,
        1 => extremes::edge(rng) as u32,
        _ => rng.below(3) as u32,
    };
    let flags = flags(rng) | __GFP_NOWARN;
    let state = SeqCount::new(rng.next() as usize);
    FolioBox::new(order, flags, state)
}

/// Uses the bytes of a folio.
fn use_folio(folio: &Folio<State>, other: Option<&Folio<State>>, rng: &mut Rng) {
    let mut buffer = [0x5a; 64];
    let len = rng.below(buffer.len() as u64 + 1) as usize;
    let (offset, from) = (bytes(rng), bytes(rng));
    // Any result is fine.
    let _ = match rng.below(7) {
        0 => folio.copy_to_slice(offset, &mut buffer[..len]),
        1 => folio.copy_from_slice(offset, &buffer[..len]),
        2 => folio.zero(offset, bytes(rng)),
        3 => folio.copy_from_folio(offset, other.unwrap_or(folio), from, bytes(rng)),
        4 => folio.copy_from_folio(offset, folio, from, bytes(rng)),
        5 => folio.copy_to_slice(folio.size().wrapping_sub(len), &mut buffer[..len]),
        _ => folio.copy_from_slice(folio.size().wrapping_sub(len / 2), &buffer[..len]),
    };
    use_count(folio.private(), rng);
}

/// Uses a sequence counter without keeping out other writers.
fn use_count<const BITS: u32>(count: &SeqCount<BITS>, rng: &mut Rng) {
    let data = rng.next() as usize;
    match rng.below(14) {
        0 => count.invalidate(&()),
        1..=3 => count.write(&(), |old| old ^ data),
        4 => count.write(count, |_| {
            count.write(&(), |_| data);
            count.data()
        }),
        5 => {
            let _ = count.read(|_| count.write(&(), |_| data));
        }
        6 => {
            // Writes that end in the order in which they have begun, or never.
            let (first, second) = (count.begin_write(&()), count.begin_write(&()));
            if data & 1 != 0 {
                first.end(data);
            }
            second.end(!data);
        }
        7 => {
            if let Some(read) = count.begin_read() {
                count.write(&(), |_| read.data() ^ data);
                let _ = read.is_valid();
            }
        }
        _ => {
            let _ = count.read(|data| data).unwrap_or(count.data());
        }
    }
}

impl Memory {
    /// Creates empty containers.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            folios <- XArray::new(c"adversary_folios", static_lock_class!()),
            numbers <- XArray::new(c"adversary_numbers", static_lock_class!()),
            values <- XArray::new(c"adversary_values", static_lock_class!()),
            moved <- XArray::new(c"adversary_moved", static_lock_class!()),
            folio: RcuPtr::new(None)?,
            number: RcuPtr::new(Some(RcuBox::new([0; 4], GFP_KERNEL)?))?,
            count: SeqCount::new(0),
        })
    }

    /// Uses the containers in some way that is allowed at `site`.
    ///
    /// An interrupt must not wait for the lock of an array, and so must not any caller that has a
    /// lock that interrupts take.
    pub(crate) fn misuse(&self, site: CallSite, rng: &mut Rng) {
        match rng.below(8) {
            0 | 1 => self.find(rng),
            2 => self.replace(rng),
            3 => use_count(&self.count, rng),
            4 => self.try_change(rng),
            _ if site.is_in_task() => self.change(rng),
            _ => self.find(rng),
        }
    }

    /// Finds values as an RCU reader.
    fn find(&self, rng: &mut Rng) {
        let (at, reader) = (index(rng), rcu::read_lock());
        match rng.below(4) {
            0 => {
                let mut cursor = self.numbers.cursor(&reader, at);
                for i in 0..rng.below(80) as usize {
                    if let Some(number) = cursor.next() {
                        warn_on!(*number != at.wrapping_add(i));
                    }
                }
            }
            1 => {
                let last = index(rng);
                if let Some((found, number)) = self.numbers.find(&reader, at..=last) {
                    warn_on!(*number != found || found < at || found > last);
                }
            }
            2 => {
                let number = self.numbers.load(&reader, at);
                warn_on!(number.is_some_and(|number| *number != at));
            }
            _ => {
                let other = self.folio.load(&reader);
                if let Some((_, folio)) = self.folios.find(&reader, at..=usize::MAX) {
                    use_folio(folio, other, rng);
                }
            }
        }
    }

    /// Replaces what the pointers point to, and looks at it before and after.
    fn replace(&self, rng: &mut Rng) {
        let reader = rng.one_in(2).then(rcu::read_lock);
        let number = reader.as_ref().and_then(|reader| self.number.load(reader));
        let folio_before = reader.as_ref().and_then(|reader| self.folio.load(reader));
        let new = [rng.next() as usize; 4];
        let removed = match rng.below(3) {
            0 => None,
            1 => self.number.replace(None),
            _ => self.number.replace(RcuBox::new(new, GFP_NOWAIT).ok()),
        };
        if let Some(removed) = &removed {
            let value = removed.borrow();
            warn_on!(value.iter().any(|word| *word != value[0]));
        }
        let old = self.folio.replace(folio(rng).ok());
        if rng.one_in(2) {
            drop(removed);
        }
        if let Some(old) = &old {
            use_folio(old.borrow(), folio_before, rng);
        }
        drop(old);
        if let Some(folio) = folio_before {
            use_folio(folio, None, rng);
        }
        if let Some(value) = number {
            warn_on!(value.iter().any(|word| *word != value[0]));
        }
    }

    /// Changes an array if its lock is free, which is allowed anywhere.
    fn try_change(&self, rng: &mut Rng) {
        match rng.below(3) {
            0 => {
                if let Some(guard) = self.folios.try_lock() {
                    let mut batch = RcuBatch::new();
                    change_folios(guard, &mut batch, rng);
                }
            }
            1 => {
                if let Some(guard) = self.numbers.try_lock() {
                    change_numbers(guard, rng);
                }
            }
            _ => {
                if let Some(mut guard) = self.values.try_lock() {
                    change_values(&mut guard, rng);
                    if let Some(mut moved) = self.moved.try_lock() {
                        move_values(&mut guard, &mut moved, rng);
                    }
                }
            }
        }
    }

    /// Changes an array.
    fn change(&self, rng: &mut Rng) {
        let at = index(rng);
        match rng.below(10) {
            0 => {
                let mut batch = RcuBatch::new();
                change_folios(self.folios.lock(), &mut batch, rng);
            }
            1 => change_numbers(self.numbers.lock(), rng),
            2 => {
                let mut guard = self.values.lock();
                change_values(&mut guard, rng);
                move_values(&mut guard, &mut self.moved.lock(), rng);
            }
            3 | 4 => {
                if let Ok(folio) = folio(rng) {
                    let _ = self.folios.insert(at, folio, flags(rng));
                }
            }
            5 => {
                if let Ok(number) = RcuBox::new(at, GFP_NOWAIT) {
                    let _ = self.numbers.insert(at, number, flags(rng));
                }
                let reader = rcu::read_lock();
                let found = self.numbers.load(&reader, at);
                drop(self.numbers.remove(at));
                warn_on!(found.is_some_and(|number| *number != at));
            }
            6 => {
                if let Ok(value) = KBox::new(Value::new(at), GFP_NOWAIT) {
                    // The value that comes back is that which was to be inserted.
                    if let Err(error) = self.values.insert(at, value, flags(rng)) {
                        error.value.check(at);
                    }
                }
                if let Some(value) = self.values.remove(at) {
                    value.check(at);
                }
            }
            7 => self.reserve(at, rng),
            8 => drop(self.folios.remove(at)),
            _ => self.remove_later(rng),
        }
    }

    /// Reserves places, and fills some.
    fn reserve(&self, at: usize, rng: &mut Rng) {
        let place = self.folios.reserve(at, flags(rng));
        let Ok(number) = self.numbers.reserve(at, flags(rng)) else {
            // The other one is given back.
            return;
        };
        warn_on!(number.index() != at);
        // What is reserved cannot be taken.
        drop(self.numbers.remove(at));
        if let Ok(value) = RcuBox::new(at, GFP_NOWAIT) {
            warn_on!(self.numbers.insert(at, value, GFP_NOWAIT).is_ok());
        }
        if let Ok(value) = RcuBox::new(at, GFP_NOWAIT) {
            warn_on!(self.numbers.lock().store(at, value).is_ok());
        }
        warn_on!(self.numbers.load(&rcu::read_lock(), at).is_some());
        match (rng.below(8), RcuBox::new(at, GFP_NOWAIT), place, folio(rng)) {
            (0, ..) => forget(number),
            (1, _, Ok(place), _) => forget(place),
            (2..=4, Ok(value), ..) => number.fill(value),
            (5 | 6, _, Ok(place), Ok(folio)) => place.fill(folio),
            _ => {}
        }
    }

    /// Removes values, and drops them late, in any order.
    fn remove_later(&self, rng: &mut Rng) {
        let mut kept: [Option<Removed<'_, FolioBox<State>>>; 4] = [const { None }; 4];
        let mut batch = RcuBatch::new();
        for _ in 0..rng.below(8) {
            let removed = self.folios.remove(index(rng));
            match (kept.get_mut(rng.below(5) as usize), removed) {
                // What was there is freed under the lock.
                (Some(room), removed) => {
                    let guard = self.folios.lock();
                    *room = removed;
                    drop(guard);
                }
                (None, removed) => batch.extend(removed),
            }
        }
        if rng.one_in(2) {
            drop(batch);
        }
        for removed in kept.iter().flatten() {
            use_folio(removed.borrow(), None, rng);
        }
    }

    /// Leaks a value that was removed, and a batch of such values.
    pub(crate) fn leak_removed(&self) -> Result {
        let number = RcuBox::new([1; 4], GFP_KERNEL)?;
        forget(self.number.replace(Some(number)));
        let mut batch = RcuBatch::new();
        for _ in 0..2 {
            let folio = FolioBox::new(1, GFP_KERNEL, State::new(0))?;
            batch.extend(self.folio.replace(Some(folio)));
        }
        forget(batch);
        Ok(())
    }

    /// Fills the memory of a request from folios.
    pub(crate) fn read(&self, at: u64, to: &mut Segments<'_, FromDisk>, rng: &mut Rng) -> Result {
        let reader = rcu::read_lock();
        let first = (at as usize) / PAGE_SIZE;
        let folio = self.folios.find(&reader, first..=usize::MAX);
        let mut done = Ok(());
        for _ in 0..=rng.below(4) {
            let (offset, len) = (bytes(rng), bytes(rng));
            match (folio, rng.below(5)) {
                (Some((_, folio)), 0 | 1) => done = to.copy_from_folio(folio, offset, len),
                (Some((_, folio)), 2) => {
                    let private = folio.private();
                    let mut copy = to.clone();
                    let _ = private.read(|_| copy.copy_from_folio(folio, offset, len));
                }
                (_, 3) => to.zero(len),
                (folio, _) => {
                    let folio = folio.map(|(_, folio)| folio);
                    // A mapping within a mapping of the same bytes.
                    let mut copy = to.clone();
                    let _ = to.with_mapped(len, |bytes| {
                        split(bytes, rng, |bytes| match folio {
                            Some(folio) => {
                                let _ = bytes.copy_from_folio(folio, offset);
                            }
                            None => bytes.zero(),
                        });
                        let _ = copy.with_mapped(usize::MAX, |bytes| bytes.zero());
                        copy.zero(100);
                    });
                }
            }
        }
        to.fill(0);
        done
    }

    /// Copies the memory of a request to folios.
    pub(crate) fn write(&self, at: u64, from: &mut Segments<'_, ToDisk>, rng: &mut Rng) -> Result {
        let first = (at as usize) / PAGE_SIZE % INDICES as usize;
        if rng.one_in(2) {
            let folio = folio(rng)?;
            from.clone()
                .copy_to_folio(&folio, bytes(rng), bytes(rng))
                .ok();
            let _ = self.folios.insert(first, folio, flags(rng));
        }
        let reader = rcu::read_lock();
        let folio = self.folios.find(&reader, first..=usize::MAX);
        let mut done = Ok(());
        for _ in 0..=rng.below(4) {
            let (offset, len) = (bytes(rng), bytes(rng));
            let Some((_, folio)) = folio else { break };
            match rng.below(3) {
                0 => done = from.copy_to_folio(folio, offset, len),
                1 => folio.private().write(&(), |data| {
                    let _ = from.copy_to_folio(folio, offset, len);
                    data
                }),
                _ => {
                    let mut copy = from.clone();
                    let _ = from.with_mapped(len, |bytes| {
                        split(bytes, rng, |bytes| {
                            let _ = bytes.copy_to_folio(folio, offset);
                        });
                        let _ = copy.copy_to_folio(folio, 0, PAGE_SIZE);
                    });
                }
            }
        }
        done
    }

    /// Removes folios.
    pub(crate) fn discard(&self, at: u64, len: u32) {
        let (first, pages) = ((at as usize) / PAGE_SIZE, len as usize / PAGE_SIZE);
        let mut batch = RcuBatch::new();
        let mut guard = self.folios.lock();
        for index in 0..pages.min(INDICES as usize) {
            batch.extend(guard.remove(first.wrapping_add(index)));
        }
    }
}

/// Splits bytes, in ways that may be impossible, and calls `use_part` with parts.
fn split<D: Direction>(
    bytes: &mut MappedBytes<'_, D>,
    rng: &mut Rng,
    mut use_part: impl FnMut(&MappedBytes<'_, D>),
) {
    for chunk in bytes.chunks(bytes_of(rng)).take(3) {
        use_part(&chunk);
    }
    for _ in 0..rng.below(4) {
        let part = bytes_of(rng);
        if let Some(first) = bytes.first(part) {
            warn_on!(first.len() != part);
            use_part(&first);
        }
        if let Some(first) = bytes.split_off(part) {
            warn_on!(first.len() != part);
            use_part(&first);
        }
        if bytes.is_empty() {
            break;
        }
    }
    use_part(bytes);
}

/// Returns a length of a part of mapped bytes.
fn bytes_of(rng: &mut Rng) -> usize {
    match rng.below(4) {
        0 => bytes(rng),
        1 => rng.below(8) as usize,
        _ => 512 * rng.below(16) as usize,
    }
}

/// Changes an array of folios under its lock.
fn change_folios<'a>(
    mut guard: Guard<'a, FolioBox<State>, Rcu>,
    batch: &mut RcuBatch<'a, FolioBox<State>>,
    rng: &mut Rng,
) {
    for _ in 0..rng.below(8) {
        let at = index(rng);
        match rng.below(7) {
            0 => {
                if let Ok(folio) = folio(rng) {
                    let _ = guard.insert(at, folio);
                }
            }
            6 => match guard.entry(at) {
                Entry::Occupied(place) => use_folio(place.get(), None, rng),
                Entry::Vacant(place) => {
                    if let Ok(folio) = folio(rng) {
                        let _ = place.insert(folio);
                    }
                }
            },
            1 => {
                if let Ok(folio) = folio(rng) {
                    // It is dropped under the lock.
                    let _ = guard.store(at, folio);
                }
            }
            2 => drop(guard.remove(at)),
            3 => batch.extend(guard.remove(at)),
            4 => {
                let mut cursor = guard.cursor(at);
                let (first, second) = (cursor.next(), cursor.next());
                if let Some(folio) = first.or(second) {
                    use_folio(folio, second, rng);
                }
            }
            _ => {
                if let Some((_, folio)) = guard.find(at..=index(rng)) {
                    use_folio(folio, guard.get(at), rng);
                }
            }
        }
    }
}

/// Changes an array of numbers under its lock.
fn change_numbers(mut guard: Guard<'_, RcuBox<usize>, Rcu>, rng: &mut Rng) {
    for _ in 0..rng.below(8) {
        let at = index(rng);
        match rng.below(5) {
            0 => {
                if let Ok(number) = RcuBox::new(at, GFP_NOWAIT) {
                    let _ = guard.insert(at, number);
                }
            }
            4 => match guard.entry(at) {
                Entry::Occupied(place) => {
                    warn_on!(*place.remove().borrow() != at);
                }
                Entry::Vacant(place) => {
                    if let Ok(number) = RcuBox::new(at, GFP_NOWAIT) {
                        let _ = place.insert(number);
                    }
                }
            },
            1 => {
                if let Ok(number) = RcuBox::new(at, GFP_NOWAIT) {
                    if let Ok(Some(old)) = guard.store(at, number) {
                        warn_on!(*old.borrow() != at);
                    }
                }
            }
            2 => {
                if let Some(number) = guard.remove(at) {
                    warn_on!(*number.borrow() != at);
                }
            }
            _ => {
                warn_on!(guard.get(at).is_some_and(|number| *number != at));
            }
        }
    }
}

/// Changes an array that only the lock protects.
fn change_values(guard: &mut Guard<'_, KBox<Value>, Locked>, rng: &mut Rng) {
    for _ in 0..rng.below(8) {
        let at = index(rng);
        match rng.below(6) {
            0 => {
                if let Ok(value) = KBox::new(Value::new(at), GFP_NOWAIT) {
                    let _ = guard.insert(at, value);
                }
            }
            5 => match guard.entry(at) {
                Entry::Occupied(place) => place.get().check(at),
                Entry::Vacant(place) => {
                    if let Ok(value) = KBox::new(Value::new(at), GFP_NOWAIT) {
                        let _ = place.insert(value);
                    }
                }
            },
            1 => {
                if let Ok(value) = KBox::new(Value::new(at), GFP_NOWAIT) {
                    if let Ok(Some(old)) = guard.store(at, value) {
                        old.check(at);
                    }
                }
            }
            2 => {
                if let Some(value) = guard.remove(at) {
                    value.check(at);
                }
            }
            3 => {
                if let Some(value) = guard.get_mut(at) {
                    value.check(at);
                    *value = Value::new(at);
                }
            }
            _ => {
                if let Some((found, value)) = guard.find(at..=usize::MAX) {
                    value.check(found);
                }
                let _ = guard.cursor(at).next().map(|value| value.check(at));
            }
        }
    }
}

/// Moves values from one array to another, or back.
fn move_values<'a>(
    one: &mut Guard<'a, KBox<Value>, Locked>,
    other: &mut Guard<'a, KBox<Value>, Locked>,
    rng: &mut Rng,
) {
    for _ in 0..rng.below(8) {
        let at = index(rng);
        let (from, to) = if rng.below(2) == 0 {
            (&mut *one, &mut *other)
        } else {
            (&mut *other, &mut *one)
        };
        match (from.entry(at), to.entry(at)) {
            (Entry::Occupied(value), Entry::Vacant(place)) => {
                if value.move_to(place).is_ok() {
                    warn_on!(from.get(at).is_some());
                    warn_on!(to.get(at).is_none());
                }
            }
            (Entry::Occupied(value), Entry::Occupied(_)) => value.remove().check(at),
            _ => (),
        }
    }
}
