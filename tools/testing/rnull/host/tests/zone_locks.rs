// SPDX-License-Identifier: GPL-2.0

//! Checks in all interleavings with up to three preemptions that the limits on zones hold while
//! several tasks change zones, each of which has its own lock.

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
use loom::{
    sync::{Arc, Mutex},
    thread,
};
use state::{Condition, Limits, ZoneError, ZoneState};
use zone_layout::*;

/// With more, it takes minutes.
const PREEMPTIONS: Option<usize> = Some(3);

const ZONES: usize = 3;

/// Zones of four sectors, with limits.
struct Disk {
    layout: ZoneLayout,
    zones: [Mutex<ZoneState>; ZONES],
    limits: Mutex<Counts>,
    /// The limits, or zero.
    open: usize,
    active: usize,
}

/// The limits of the driver, and beside them what they are meant to know.
struct Counts {
    limits: ZoneLimits,
    conditions: [Condition; ZONES],
}

struct Counted<'a>(u32, &'a Disk);

impl Limits for Counted<'_> {
    fn exist(&self) -> bool {
        true
    }

    fn change(&self, from: Condition, to: Condition) -> Result<(), ZoneError> {
        let disk = self.1;
        let mut counts = disk.limits.lock().unwrap();
        assert_eq!(counts.conditions[self.0 as usize], from);
        counts.limits.change(self.0, from, to)?;
        counts.conditions[self.0 as usize] = to;
        let count = |which: &[Condition]| {
            counts
                .conditions
                .iter()
                .filter(|condition| which.contains(condition))
                .count()
        };
        let open = count(&[Condition::ImplicitlyOpen, Condition::ExplicitlyOpen]);
        assert!(disk.open == 0 || open <= disk.open);
        assert!(disk.active == 0 || open + count(&[Condition::Closed]) <= disk.active);
        Ok(())
    }
}

loom::thread_local! {
    static HELD: std::cell::Cell<bool> = std::cell::Cell::new(false);
}

impl LockedZones for Disk {
    type Limits<'a> = Counted<'a>;

    fn with_locked<R>(
        &self,
        number: u32,
        f: impl FnOnce(&mut ZoneState, &Counted<'_>) -> R,
    ) -> Result<R, ZoneError> {
        HELD.with(|held| assert!(!held.replace(true), "a task locks two zones"));
        let result = f(
            &mut self.zones[number as usize].lock().unwrap(),
            &Counted(number, self),
        );
        HELD.with(|held| held.set(false));
        Ok(result)
    }

    fn take_victim(&self) -> Option<u32> {
        self.limits.lock().unwrap().limits.take_victim()
    }
}

impl Disk {
    fn new(open: usize, active: usize) -> Arc<Self> {
        let layout = ZoneLayout::new(4 * ZONES as u64, 4, 4, ZONES as u32).unwrap();
        let zone = |number| Mutex::new(ZoneState::new(layout.zone(number).unwrap(), false));
        Arc::new(Self {
            layout,
            zones: [0, 1, 2].map(zone),
            limits: Mutex::new(Counts {
                limits: ZoneLimits::new(open as u32, active as u32).unwrap(),
                conditions: [Condition::Empty; ZONES],
            }),
            open,
            active,
        })
    }

    fn open_zone_0(&self) {
        assert_eq!(self.append(0, 1), Ok(0));
    }

    /// Appends so many sectors.
    fn append(&self, number: u32, len: u64) -> Result<u64, ZoneError> {
        with_place(self, number, |state, limits| {
            let at = state.begin_write(None, len, limits)?;
            state.advance(len, limits);
            Ok(at)
        })
    }

    fn open(&self, number: u32) -> Result<(), ZoneError> {
        with_place(self, number, |state, limits| state.open(limits))
    }

    fn close(&self, number: u32) -> Result<(), ZoneError> {
        with_place(self, number, |state, limits| state.close(limits))
    }

    fn reset(&self, number: u32) -> Result<(), ZoneError> {
        with_place(self, number, |state, limits| state.reset(limits))
    }

    fn finish(&self, number: u32) -> Result<(), ZoneError> {
        with_place(self, number, |state, limits| state.finish(limits))
    }

    fn condition(&self, number: usize) -> Condition {
        let condition = self.zones[number].lock().unwrap().condition();
        assert_eq!(condition, self.limits.lock().unwrap().conditions[number]);
        condition
    }
}

/// Runs both at the same time on a disk with these limits, after `before`. Returns the disk and both
/// results to `after`.
fn race<A: Send + 'static, B: Send + 'static>(
    (open, active): (usize, usize),
    before: fn(&Disk),
    first: fn(&Disk) -> A,
    second: fn(&Disk) -> B,
    after: fn(&Disk, A, B),
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = PREEMPTIONS;
    builder.check(move || {
        let disk = Disk::new(open, active);
        before(&disk);
        let shared = disk.clone();
        let thread = thread::spawn(move || first(&shared));
        let second = second(&disk);
        let first = thread.join().unwrap();
        // This compares the zones with what the limits know.
        for number in 0..ZONES {
            disk.condition(number);
        }
        after(&disk, first, second);
    });
}

const FULL: Result<u64, ZoneError> = Err(ZoneError::TooManyOpen);

#[test]
fn both_writers_get_the_only_place() {
    race(
        (1, 0),
        Disk::open_zone_0,
        |disk| disk.append(1, 1),
        |disk| disk.append(2, 1),
        |disk, first, second| {
            assert_eq!((first, second), (Ok(0), Ok(0)));
            assert_eq!(disk.condition(0), Condition::Closed);
        },
    );
}

#[test]
fn an_explicitly_open_zone_is_not_closed() {
    race(
        (1, 0),
        Disk::open_zone_0,
        |disk| disk.open(1),
        |disk| disk.append(2, 1),
        |disk, first, second| {
            assert_eq!(first, Ok(()));
            assert!(second == Ok(0) || second == FULL);
            assert_eq!(disk.condition(1), Condition::ExplicitlyOpen);
        },
    );
}

#[test]
fn a_victim_may_be_opened_explicitly() {
    race(
        (1, 0),
        Disk::open_zone_0,
        |disk| disk.open(0),
        |disk| disk.append(1, 1),
        |disk, first, second| {
            assert_eq!(first, Ok(()));
            assert!(second == Ok(0) || second == FULL);
            // Whatever comes first, nothing may close the zone after it was opened.
            assert_eq!(disk.condition(0), Condition::ExplicitlyOpen);
        },
    );
}

#[test]
fn a_victim_may_be_in_use() {
    race(
        (1, 2),
        Disk::open_zone_0,
        |disk| disk.append(0, 3),
        |disk| disk.append(1, 1),
        |disk, first, second| {
            // Both zones are active now, or were: then no zone may be closed for another.
            assert!(first == Ok(1) || first == FULL);
            assert_eq!(second, Ok(0));
            assert!(first.is_err() || disk.condition(0) == Condition::Full);
        },
    );
}

#[test]
fn a_victim_may_be_reset_or_closed() {
    let others: [fn(&Disk) -> Result<(), ZoneError>; 2] =
        [|disk| disk.reset(0), |disk| disk.close(0)];
    for other in others {
        race(
            (1, 0),
            Disk::open_zone_0,
            other,
            |disk| disk.append(1, 1),
            |disk, first, second| {
                // If it was closed for the other zone before, closing it once more does nothing.
                assert_eq!((first, second), (Ok(()), Ok(0)));
                assert_eq!(disk.condition(1), Condition::ImplicitlyOpen);
            },
        );
    }
}

#[test]
fn the_zone_may_change_while_a_victim_is_closed() {
    race(
        (1, 0),
        Disk::open_zone_0,
        |disk| disk.append(1, 4),
        |disk| disk.finish(1),
        |disk, first, second| {
            assert!(first == Ok(0) || first == Err(ZoneError::Invalid));
            assert_eq!(second, Ok(()));
            assert_eq!(disk.condition(1), Condition::Full);
        },
    );
}

#[test]
fn only_so_many_zones_get_active() {
    race(
        (0, 1),
        |_| (),
        |disk| disk.append(0, 4).and(disk.append(1, 1)),
        |disk| disk.open(2),
        |_, first, second| {
            let none = Err(ZoneError::TooManyActive);
            assert!(first == Ok(0) || first == none.map(|()| 0));
            assert!(second == Ok(()) || second == none);
            // At least one of them was in time.
            assert!(first.is_ok() || second.is_ok());
        },
    );
}
