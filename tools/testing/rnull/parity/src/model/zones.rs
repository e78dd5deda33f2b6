// SPDX-License-Identifier: GPL-2.0

//! The zones of a disk that is on, with what the block layer remembers of them.
//!
//! All positions are in sectors. The conditions of all zones are known at once, and counted anew
//! each time that a limit has to be kept.

use super::settings::Settings;
use Condition::*;

/// Sectors in a MiB.
const MIB: u64 = 2048;

/// The condition of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Conventional,
    Empty,
    Implicit,
    Explicit,
    Closed,
    Full,
    ReadOnly,
    Offline,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Conventional => "conventional",
            Empty => "empty",
            Implicit => "implicit",
            Explicit => "explicit",
            Closed => "closed",
            Full => "full",
            ReadOnly => "readonly",
            Offline => "offline",
        }
    }
}

/// What a request changes in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Open,
    Close,
    Finish,
    Reset,
}

/// What the block layer remembers of a zone that is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plug {
    /// The write pointer, if all that was submitted succeeds.
    pointer: u64,
    /// Whether that did not succeed, so that it accepts nothing before it is told where the write
    /// pointer is.
    is_lost: bool,
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub first: u64,
    pub len: u64,
    pub capacity: u64,
    pub condition: Condition,
    /// How much is in front of the write pointer.
    pub written: u64,
    plug: Option<Plug>,
}

impl Zone {
    /// Whether the block layer remembers it.
    pub fn is_remembered(&self) -> bool {
        self.plug.is_some()
    }

    /// Whether nothing but a report makes the block layer accept the next write.
    pub fn is_lost(&self) -> bool {
        self.plug.is_some_and(|plug| plug.is_lost)
    }

    fn show(&self) -> String {
        let bytes = |sectors: u64| sectors * 512;
        let pointer = match self.condition {
            ReadOnly | Offline => "none".into(),
            _ => bytes(self.first + self.written).to_string(),
        };
        let [first, len, capacity] = [self.first, self.len, self.capacity].map(bytes);
        let condition = self.condition.name();
        format!("{first}+{len}/{capacity}@{pointer}:{condition}")
    }

    /// Drops what the block layer remembers where it is of no use.
    fn settle(&mut self) {
        let of_use = |plug: &Plug| plug.pointer > 0 && plug.pointer < self.capacity;
        self.plug = self.plug.filter(of_use);
    }
}

/// The zones of a disk.
#[derive(Clone, Debug)]
pub struct Zones {
    zones: Vec<Zone>,
    /// The length of all zones but perhaps the last.
    size: u64,
    max_open: u64,
    max_active: u64,
    /// The zone from which on the next one to be closed for another is searched.
    victim: usize,
    /// The zones that null_blk counts and that are not there.
    phantoms: Phantoms,
    is_null_blk: bool,
}

/// How many zones null_blk takes for implicitly open, explicitly open, closed that no longer are:
/// closed ones that have failed (defect 14), and all from before a power cycle (defect 16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phantoms([u64; 3]);

impl Phantoms {
    pub fn exist(self) -> bool {
        self != Self::default()
    }
}

impl Zones {
    /// The zones of a disk with settings that were brought into range.
    pub fn new(settings: &Settings, is_null_blk: bool, phantoms: Phantoms) -> Self {
        let disk = settings.get("size") * MIB;
        let size = settings.get("zone_size") * MIB;
        let zone = |number: u64| {
            let first = number * size;
            let len = size.min(disk - first);
            let capacity = len.min(settings.get("zone_capacity") * MIB);
            let (capacity, condition, written) = match settings.is("zone_full") {
                _ if number < settings.get("zone_nr_conv") => (len, Conventional, len),
                true => (capacity, Full, capacity),
                false => (capacity, Empty, 0),
            };
            Zone {
                first,
                len,
                capacity,
                condition,
                written,
                plug: None,
            }
        };
        Self {
            zones: (0..disk.div_ceil(size)).map(zone).collect(),
            size,
            max_open: settings.get("zone_max_open"),
            max_active: settings.get("zone_max_active"),
            victim: 0,
            phantoms,
            is_null_blk,
        }
    }

    /// Whether the zones of another disk look the same, and will do.
    pub fn is_like(&self, other: &Self) -> bool {
        let state = |zones: &Self| (zones.phantoms, zones.victim % zones.zones.len());
        self.zones == other.zones && state(self) == state(other)
    }

    /// What null_blk will count after power-off.
    pub fn leave(&self) -> Phantoms {
        let Phantoms(mut phantoms) = self.phantoms;
        if self.is_null_blk && self.has_limits() {
            for (count, condition) in phantoms.iter_mut().zip([Implicit, Explicit, Closed]) {
                *count += self.count(&[condition]);
            }
        }
        Phantoms(phantoms)
    }

    pub fn all(&self) -> &[Zone] {
        &self.zones
    }

    /// Whether what is done to one zone may matter for another.
    pub fn has_limits(&self) -> bool {
        self.max_open > 0 || self.max_active > 0
    }

    /// The zone with a sector.
    pub fn find(&self, sector: u64) -> &Zone {
        &self.zones[self.number(sector)]
    }

    fn number(&self, sector: u64) -> usize {
        (sector / self.size) as usize
    }

    fn end(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.first + zone.len)
    }

    fn count(&self, conditions: &[Condition]) -> u64 {
        let counts = |zone: &&Zone| conditions.contains(&zone.condition);
        self.zones.iter().filter(counts).count() as u64
    }

    fn may_activate(&self) -> bool {
        let Phantoms(phantoms) = self.phantoms;
        let active = self.count(&[Implicit, Explicit, Closed]) + phantoms.iter().sum::<u64>();
        self.max_active == 0 || active < self.max_active
    }

    /// Makes sure that one more zone may be open, which is empty or closed so far; returns whether
    /// another was closed for it.
    fn make_place(&mut self, number: usize) -> Result<bool, &'static str> {
        if self.zones[number].condition == Empty && !self.may_activate() {
            return Err("EOVERFLOW");
        }
        let Phantoms([implicit, explicit, _]) = self.phantoms;
        let open = self.count(&[Implicit, Explicit]) + implicit + explicit;
        if self.max_open == 0 || open < self.max_open {
            return Ok(false);
        }
        let all = self.zones.len();
        let mut candidates = (0..all).map(|i| (self.victim + i) % all);
        match candidates.find(|at| self.zones[*at].condition == Implicit) {
            Some(at) if self.may_activate() => {
                let zone = &mut self.zones[at];
                zone.condition = if zone.written > 0 { Closed } else { Empty };
                self.victim = at + 1;
                Ok(true)
            }
            // null_blk is content with having searched.
            None if implicit > 0 && self.may_activate() => Ok(false),
            _ => Err("ETOOMANYREFS"),
        }
    }

    /// Starts a write request of so many sectors in one zone, which opens the zone. If the block
    /// layer refuses one that it has `delayed`, it takes no note of that.
    pub fn begin_write(
        &mut self,
        sector: u64,
        count: u64,
        delayed: bool,
    ) -> Result<(), &'static str> {
        let number = self.number(sector);
        let zone = &mut self.zones[number];
        if zone.condition == Conventional {
            return Ok(());
        }
        let offset = sector - zone.first;
        let plug = zone.plug.get_or_insert(Plug {
            pointer: offset,
            is_lost: false,
        });
        if plug.is_lost || plug.pointer >= zone.capacity || plug.pointer != offset {
            plug.is_lost |= !delayed;
            return Err("EIO");
        }
        plug.pointer += count;
        let result = match zone.condition {
            Full | ReadOnly | Offline => Err("EIO"),
            _ if offset != zone.written || offset + count > zone.capacity => Err("EIO"),
            Empty | Closed => self.make_place(number).map(|_| ()),
            _ => Ok(()),
        };
        let zone = &mut self.zones[number];
        match result {
            Ok(()) if matches!(zone.condition, Empty | Closed) => zone.condition = Implicit,
            Ok(()) => {}
            Err(_) => self.end_write(sector, 0, false),
        }
        result
    }

    /// Ends a write request that has transferred so many sectors.
    pub fn end_write(&mut self, sector: u64, count: u64, succeeds: bool) {
        let number = self.number(sector);
        let zone = &mut self.zones[number];
        if zone.condition == Conventional {
            return;
        }
        if let Some(plug) = &mut zone.plug {
            plug.is_lost |= !succeeds;
        }
        zone.settle();
        zone.written += count;
        if count > 0 && zone.written == zone.capacity {
            zone.condition = Full;
        }
    }

    /// Whether a read of a sector gets what is on the medium.
    pub fn is_written(&self, sector: u64) -> bool {
        let zone = self.find(sector);
        match zone.condition {
            Conventional | ReadOnly => true,
            _ => sector < zone.first + zone.written,
        }
    }

    /// Changes zones; returns what becomes of the command, and the ranges of sectors whose data is
    /// discarded.
    pub fn change(
        &mut self,
        change: Change,
        sector: u64,
        count: u64,
    ) -> (Result<(), &'static str>, Vec<(u64, u64)>) {
        let (size, end) = (self.size, sector.saturating_add(count));
        let fits = sector % size == 0 && (count % size == 0 || end == self.end());
        if count == 0 || end > self.end() || !fits {
            return (Err("EINVAL"), Vec::new());
        }
        let mut discarded = Vec::new();
        if change == Change::Reset && count == self.end() {
            for zone in &mut self.zones {
                if !matches!(zone.condition, Conventional | Empty | ReadOnly | Offline) {
                    (zone.condition, zone.written) = (Empty, 0);
                    discarded.push((zone.first, zone.len));
                }
                zone.plug = None;
            }
            return (Ok(()), discarded);
        }
        let mut all = Ok(());
        for number in self.number(sector)..self.number(end - 1) + 1 {
            let result = self.change_one(change, number);
            let zone = &mut self.zones[number];
            if result.is_ok() && change == Change::Reset {
                discarded.push((zone.first, zone.len));
            }
            if result.is_err() {
                all = result;
            }
            // The requests are chained: each inherits the error of those before it, with which the
            // block layer does not look at what it has done.
            if all.is_ok() && matches!(change, Change::Reset | Change::Finish) {
                zone.plug = None;
            }
        }
        (all, discarded)
    }

    fn change_one(&mut self, change: Change, number: usize) -> Result<(), &'static str> {
        let limited = self.has_limits();
        let condition = self.zones[number].condition;
        match (change, condition) {
            (_, Conventional | ReadOnly | Offline) => return Err("EIO"),
            (Change::Open, Explicit) | (Change::Close, Closed) => return Ok(()),
            (Change::Finish, Full) if limited => return Ok(()),
            (Change::Open, Full) | (Change::Close, Empty | Full) => return Err("EIO"),
            (Change::Open | Change::Finish, Empty | Closed) => {
                self.make_place(number)?;
            }
            _ => {}
        }
        let zone = &mut self.zones[number];
        (zone.condition, zone.written) = match change {
            Change::Open => (Explicit, zone.written),
            Change::Close if zone.written == 0 => (Empty, 0),
            Change::Close => (Closed, zone.written),
            Change::Finish => (Full, zone.len),
            Change::Reset => (Empty, 0),
        };
        Ok(())
    }

    /// Makes the zone with a sector read-only or offline, or empty if it is just that; returns the
    /// range that is discarded, and the defect that null_blk shows.
    pub fn toggle(
        &mut self,
        sector: u64,
        to: Condition,
    ) -> Result<(Option<(u64, u64)>, Option<u32>), &'static str> {
        if sector >= self.zones.len() as u64 * self.size {
            return Err("EINVAL");
        }
        let number = self.number(sector);
        let condition = self.zones[number].condition;
        if condition == Conventional {
            return Err("EINVAL");
        }
        let mut defect = None;
        // null_blk finishes the zone first, for which a zone that is not open needs a place.
        if self.is_null_blk && matches!(condition, Empty | Closed) {
            match self.make_place(number) {
                Ok(true) => defect = Some(15),
                Err(_) if condition == Closed => {
                    self.phantoms.0[2] += 1;
                    defect = Some(14);
                }
                _ => {}
            }
        }
        let zone = &mut self.zones[number];
        zone.written = 0;
        if condition == to {
            zone.condition = Empty;
            return Ok((Some((zone.first, zone.len)), defect));
        }
        zone.condition = to;
        Ok((None, defect))
    }

    /// Reports so many zones, which tells the block layer of write pointers that it has lost.
    pub fn report(&mut self, sector: u64, count: u64) -> String {
        let all = match sector < self.end() {
            true => self.number(sector)..self.zones.len(),
            false => 0..0,
        };
        let mut text = String::from("ok");
        for zone in self.zones[all].iter_mut().take(count as usize) {
            text += " ";
            text += &zone.show();
            if let Some(plug) = zone.plug.as_mut().filter(|plug| plug.is_lost) {
                plug.is_lost = false;
                plug.pointer = match zone.condition {
                    Empty | Implicit | Explicit | Closed => zone.written,
                    _ => u64::MAX,
                };
                zone.settle();
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;
