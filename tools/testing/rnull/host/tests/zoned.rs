// SPDX-License-Identifier: GPL-2.0

//! Checks the zones of a disk against null_blk's rules told in other words: a model that knows the
//! condition of all zones at once, and counts them anew each time.

extern crate self as kernel;

#[path = "model/kvec.rs"]
pub mod prelude;

#[path = "../../../../../drivers/block/rnull/zoned/limits.rs"]
mod limits;
#[path = "../../../../../drivers/block/rnull/zoned/state.rs"]
mod state;
#[path = "../../../../../drivers/block/rnull/zone_layout.rs"]
mod zone_layout;

use limits::*;
use proptest::prelude::*;
use state::{Condition, Limits, ZoneError, ZoneState};
use std::cell::{Cell, RefCell};
use zone_layout::*;

/// The zones as in the driver, with locks that notice if two are held.
struct Disk {
    layout: ZoneLayout,
    /// The sequential zones.
    zones: Vec<RefCell<ZoneState>>,
    limits: Option<RefCell<ZoneLimits>>,
    held: Cell<u32>,
}

struct Counted<'a>(u32, &'a Disk);

impl Limits for Counted<'_> {
    fn exist(&self) -> bool {
        self.1.limits.is_some()
    }

    fn change(&self, from: Condition, to: Condition) -> Result<(), ZoneError> {
        match &self.1.limits {
            Some(limits) => limits.borrow_mut().change(self.0, from, to),
            None => Ok(()),
        }
    }
}

impl LockedZones for Disk {
    type Limits<'a> = Counted<'a>;

    fn with_locked<R>(
        &self,
        number: u32,
        f: impl FnOnce(&mut ZoneState, &Counted<'_>) -> R,
    ) -> Result<R, ZoneError> {
        let zone = self.sequential(number).ok_or(ZoneError::Invalid)?;
        assert_eq!(self.held.replace(1), 0, "two zones are locked");
        let result = f(&mut zone.borrow_mut(), &Counted(number, self));
        self.held.set(0);
        Ok(result)
    }

    fn take_victim(&self) -> Option<u32> {
        self.limits.as_ref()?.borrow_mut().take_victim()
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A write of so many sectors at this distance from the write pointer, of which so many succeed.
    Write(i64, u64, u64),
    Append(u64),
    Open,
    Close,
    Finish,
    Reset,
    ResetAll,
    ReadOnly,
    Offline,
    Read(u64, u64),
}

impl Disk {
    fn new(layout: ZoneLayout, open: u32, active: u32, full: bool) -> Self {
        let zone = |number| RefCell::new(ZoneState::new(layout.zone(number).unwrap(), full));
        let limits = || RefCell::new(ZoneLimits::new(open, active).unwrap());
        Self {
            layout,
            zones: (layout.conventional()..layout.count()).map(zone).collect(),
            limits: (open > 0 || active > 0).then(limits),
            held: Cell::new(0),
        }
    }

    /// Returns the zone with this number, unless it is conventional.
    fn sequential(&self, number: u32) -> Option<&RefCell<ZoneState>> {
        let index = number.checked_sub(self.layout.conventional())?;
        Some(&self.zones[index as usize])
    }

    /// Does a step on a zone. Returns where a write went, or how much can be read.
    fn step(&self, number: u32, step: Step) -> Result<u64, ZoneError> {
        let write = |at, len, done: u64| {
            let at = with_place(self, number, |state, limits| {
                state.begin_write(at, len, limits)
            })?;
            self.with_locked(number, |state, limits| {
                if done > 0 {
                    state.advance(done.min(len), limits);
                }
            })?;
            Ok(at)
        };
        let change = |f: fn(&mut ZoneState, &Counted<'_>) -> Result<(), ZoneError>| {
            with_place(self, number, |state, limits| f(state, limits)).map(|()| 0)
        };
        let toggle = |failed| {
            with_place(self, number, |state, limits| state.toggle(failed, limits)).map(u64::from)
        };
        match step {
            Step::Write(distance, len, done) => {
                let zone = self.sequential(number);
                let pointer = zone.map_or(0, |zone| zone.borrow().written());
                let at = pointer.saturating_add_signed(distance);
                write(Some(at), len, done)
            }
            Step::Append(len) => write(None, len, len),
            Step::Open => change(|state, limits| state.open(limits)),
            Step::Close => change(|state, limits| state.close(limits)),
            Step::Finish => change(|state, limits| state.finish(limits)),
            Step::Reset => change(|state, limits| state.reset(limits)),
            Step::ResetAll => {
                for number in self.layout.conventional()..self.layout.count() {
                    self.with_locked(number, |state, limits| {
                        if state.is_reset_with_all() {
                            state.reset(limits).unwrap();
                        }
                    })?;
                }
                Ok(0)
            }
            Step::ReadOnly => toggle(Condition::ReadOnly),
            Step::Offline => toggle(Condition::Offline),
            Step::Read(at, len) => self.with_locked(number, |state, _| state.readable(at, len))?,
        }
    }
}

/// The model. The conditions are numbers of C: 0 conventional, 1 empty, 2 and 3 open, 4 closed, 13
/// read-only, 14 full, 15 offline. In a conventional zone nothing succeeds.
#[derive(Clone)]
struct Model {
    conditions: Vec<u8>,
    pointers: Vec<u64>,
    zones: Vec<Zone>,
    open: usize,
    active: usize,
    cursor: usize,
}

#[derive(Debug, PartialEq)]
enum Failure {
    Io,
    Open,
    Active,
}

impl Model {
    fn count(&self, conditions: &[u8]) -> usize {
        self.conditions
            .iter()
            .filter(|condition| conditions.contains(condition))
            .count()
    }

    /// Makes room for a zone that is empty or closed to be opened.
    fn make_room(&mut self, number: usize) -> Result<(), Failure> {
        let inactive = self.active == 0 || self.count(&[2, 3, 4]) < self.active;
        if self.conditions[number] == 1 && !inactive {
            return Err(Failure::Active);
        }
        if self.open == 0 || self.count(&[2, 3]) < self.open {
            return Ok(());
        }
        let all = self.zones.len();
        let victim = (0..all)
            .map(|n| (self.cursor + n) % all)
            .find(|n| self.conditions[*n] == 2);
        match victim {
            Some(victim) if inactive => {
                self.conditions[victim] = if self.pointers[victim] == 0 { 1 } else { 4 };
                self.cursor = (victim + 1) % all;
                Ok(())
            }
            _ => Err(Failure::Open),
        }
    }

    fn write(&mut self, n: usize, at: u64, len: u64, done: u64) -> Result<u64, Failure> {
        let (condition, pointer) = (self.conditions[n], self.pointers[n]);
        let accepted = [1, 2, 3, 4].contains(&condition);
        if !accepted || at != pointer || at + len > self.zones[n].capacity {
            return Err(Failure::Io);
        }
        if [1, 4].contains(&condition) {
            self.make_room(n)?;
            self.conditions[n] = 2;
        }
        self.pointers[n] += done.min(len);
        if self.pointers[n] == self.zones[n].capacity {
            self.conditions[n] = 14;
        }
        Ok(pointer)
    }

    fn toggle(&mut self, n: usize, condition: u8) -> Result<u64, Failure> {
        let repaired = self.conditions[n] == condition;
        self.conditions[n] = if repaired { 1 } else { condition };
        self.pointers[n] = 0;
        Ok(repaired.into())
    }

    fn step(&mut self, n: usize, step: Step) -> Result<u64, Failure> {
        let condition = self.conditions[n];
        let failed = condition == 13 || condition == 15;
        if condition == 0 && !matches!(step, Step::ResetAll) {
            return Err(Failure::Io);
        }
        match step {
            Step::Write(distance, len, done) => {
                let at = self.pointers[n].saturating_add_signed(distance);
                self.write(n, at, len, done)
            }
            Step::Append(len) => self.write(n, self.pointers[n], len, len),
            Step::Open => match condition {
                3 => Ok(0),
                1 | 2 | 4 => {
                    if condition != 2 {
                        self.make_room(n)?;
                    }
                    self.conditions[n] = 3;
                    Ok(0)
                }
                _ => Err(Failure::Io),
            },
            Step::Close => match condition {
                4 => Ok(0),
                2 | 3 => {
                    self.conditions[n] = if self.pointers[n] > 0 { 4 } else { 1 };
                    Ok(0)
                }
                _ => Err(Failure::Io),
            },
            _ if failed && matches!(step, Step::Finish | Step::Reset) => Err(Failure::Io),
            Step::Finish => {
                let limited = self.open > 0 || self.active > 0;
                if condition == 14 && limited {
                    return Ok(0);
                }
                if limited && [1, 4].contains(&condition) {
                    self.make_room(n)?;
                }
                self.conditions[n] = 14;
                self.pointers[n] = self.zones[n].len;
                Ok(0)
            }
            Step::Reset => {
                self.conditions[n] = 1;
                self.pointers[n] = 0;
                Ok(0)
            }
            Step::ResetAll => {
                for n in 0..self.zones.len() {
                    if ![0, 13, 15].contains(&self.conditions[n]) {
                        let _ = self.step(n, Step::Reset);
                    }
                }
                Ok(0)
            }
            Step::ReadOnly => self.toggle(n, 13),
            Step::Offline => self.toggle(n, 15),
            Step::Read(at, len) => match condition {
                15 => Err(Failure::Io),
                13 => Ok(len),
                _ => Ok((at..at + len)
                    .filter(|sector| *sector < self.pointers[n])
                    .count() as u64),
            },
        }
    }
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..9u64, 0..9u64).prop_map(|(len, done)| Step::Write(0, len, done)),
        2 => (-2..3i64, 1..18u64).prop_map(|(distance, len)| Step::Write(distance, len, len)),
        4 => (1..9u64).prop_map(Step::Append),
        4 => Just(Step::Open),
        3 => Just(Step::Close),
        2 => Just(Step::Finish),
        3 => Just(Step::Reset),
        1 => prop_oneof![Just(Step::ResetAll), Just(Step::ReadOnly), Just(Step::Offline)],
        1 => Just(Step::ReadOnly),
        2 => (0..16u64, 1..16u64).prop_map(|(at, len)| Step::Read(at, len)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn zones_are_those_of_null_blk(
        (zones, rest, capacity) in (2..7u64, 0..16u64, 1..17u64),
        (active, open) in (0..4u32, 0..4u32),
        full in prop::bool::weighted(0.1),
        conventional in prop_oneof![Just(0u32), 0..9u32],
        steps in prop::collection::vec((any::<prop::sample::Index>(), steps()), 1..120),
    ) {
        let capacity = if rest > 0 { 16 } else { capacity };
        let open = if active > 0 { open.min(active) } else { open };
        let layout = ZoneLayout::new(zones * 16 + rest, 16, capacity, 100).unwrap();
        let layout = layout.with_conventional(conventional);
        let disk = Disk::new(layout, open, active, full);
        let zones: Vec<_> = (0..layout.count()).map(|n| layout.zone(n).unwrap()).collect();
        let conventional = (conventional as usize).min(zones.len() - 1);
        let mut conditions = vec![if full { 14 } else { 1 }; zones.len()];
        conditions[..conventional].fill(0);
        let mut model = Model {
            conditions,
            pointers: zones.iter().map(|zone| if full { zone.capacity } else { 0 }).collect(),
            zones,
            open: open as usize,
            active: active as usize,
            cursor: 0,
        };
        for (index, step) in steps {
            let number = index.index(model.zones.len());
            let expected = model.step(number, step);
            let result = disk.step(number as u32, step).map_err(|error| match error {
                ZoneError::Invalid => Failure::Io,
                ZoneError::TooManyOpen => Failure::Open,
                ZoneError::TooManyActive => Failure::Active,
                ZoneError::NoPlace => panic!("a place is left to the caller"),
            });
            prop_assert_eq!(result, expected, "{:?} of zone {}", step, number);
            prop_assert_eq!(disk.zones.len(), model.zones.len() - conventional);
            for n in conventional..model.zones.len() {
                let zone = disk.sequential(n as u32).unwrap().borrow();
                prop_assert_eq!(zone.condition() as u8, model.conditions[n], "zone {}", n);
                let failed = [13, 15].contains(&model.conditions[n]);
                prop_assert!(failed || zone.written() == model.pointers[n], "zone {}", n);
            }
        }
    }
}
