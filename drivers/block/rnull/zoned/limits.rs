// SPDX-License-Identifier: GPL-2.0

//! The limits on the zones that are open or active.
//!
//! Imports nothing of the kernel but vectors, so it can be compiled and tested without one.
//!
//! There is one lock for each zone, and one for the limits. A task holds the lock of one zone at
//! most, and takes that of the limits only inside it, for as long as it takes to count. A task that
//! needs the place of another zone therefore unlocks its own, closes the other under the lock of
//! that, then tries again from the start: see [`with_place`].

use super::state::{
    Condition,
    Limits,
    ZoneError,
    ZoneState, //
};
use kernel::prelude::*;

/// The limits of a disk, and the zones that count.
///
/// An open zone is also active, and so is a closed one. All that is known here of a zone changes
/// together with its condition, under the lock of the zone.
pub(crate) struct ZoneLimits {
    /// Zero means that there is no such limit.
    max_open: u32,
    /// As above.
    max_active: u32,
    explicitly_open: u32,
    closed: u32,
    /// The numbers of the zones that are implicitly open, sorted.
    implicitly_open: KVVec<u32>,
    /// The number from which on the next victim is searched.
    next_victim: u32,
}

impl ZoneLimits {
    /// Limits the numbers of open and active zones, one of which may be zero for no limit.
    pub(crate) fn new(max_open: u32, max_active: u32) -> Result<Self> {
        let most = if max_open == 0 { max_active } else { max_open };
        Ok(Self {
            max_open,
            max_active,
            explicitly_open: 0,
            closed: 0,
            implicitly_open: KVVec::with_capacity(most as usize, GFP_KERNEL | __GFP_NOWARN)?,
            next_victim: 0,
        })
    }

    fn open(&self) -> u32 {
        self.explicitly_open
            .saturating_add(self.implicitly_open.len() as u32)
    }

    fn may_activate(&self) -> bool {
        self.max_active == 0 || self.open().saturating_add(self.closed) < self.max_active
    }

    /// Checks whether one more zone may be open.
    ///
    /// null_blk closes another zone only while one more may be active, also for a closed zone,
    /// which is active already.
    fn check_open(&self) -> Result<(), ZoneError> {
        if self.max_open == 0 || self.open() < self.max_open {
            return Ok(());
        }
        if !self.may_activate() || self.implicitly_open.is_empty() {
            return Err(ZoneError::TooManyOpen);
        }
        Err(ZoneError::NoPlace)
    }

    /// Returns a zone to close: those that are implicitly open in turn, so that the next task that
    /// needs a place takes that of another zone. [`None`] if there is a place by now.
    pub(crate) fn take_victim(&mut self) -> Option<u32> {
        if self.open() < self.max_open {
            return None;
        }
        let behind = self.position(self.next_victim).unwrap_or_else(|at| at);
        let open = &self.implicitly_open;
        let victim = *open.get(behind).or_else(|| open.first())?;
        self.next_victim = victim.saturating_add(1);
        Some(victim)
    }

    fn position(&self, zone: u32) -> Result<usize, usize> {
        self.implicitly_open.binary_search(&zone)
    }

    /// Accounts for a zone whose condition changes. After an error it must not change.
    ///
    /// A zone that is neither open nor full needs a place to become one of them.
    pub(crate) fn change(
        &mut self,
        zone: u32,
        from: Condition,
        to: Condition,
    ) -> Result<(), ZoneError> {
        use Condition::*;

        if from == to {
            return Ok(());
        }
        if matches!(to, ImplicitlyOpen | ExplicitlyOpen | Full) {
            if from == Empty && !self.may_activate() {
                return Err(ZoneError::TooManyActive);
            }
            if matches!(from, Empty | Closed) {
                self.check_open()?;
            }
        }
        if to == ImplicitlyOpen {
            let at = self.position(zone).unwrap_or_else(|at| at);
            // There is room for as many as may be open.
            let added = self.implicitly_open.insert_within_capacity(at, zone);
            added.map_err(|_| ZoneError::TooManyOpen)?;
        }
        match from {
            ImplicitlyOpen => {
                if let Ok(at) = self.position(zone) {
                    let _ = self.implicitly_open.remove(at);
                }
            }
            ExplicitlyOpen => self.explicitly_open = self.explicitly_open.saturating_sub(1),
            Closed => self.closed = self.closed.saturating_sub(1),
            _ => (),
        }
        match to {
            ExplicitlyOpen => self.explicitly_open = self.explicitly_open.saturating_add(1),
            Closed => self.closed = self.closed.saturating_add(1),
            _ => (),
        }
        Ok(())
    }
}

/// The zones of a disk, each with its lock.
pub(crate) trait LockedZones {
    /// The limits that a zone is subject to.
    type Limits<'a>: Limits
    where
        Self: 'a;

    /// Calls `f` under the lock of the zone with this number.
    fn with_locked<R>(
        &self,
        number: u32,
        f: impl FnOnce(&mut ZoneState, &Self::Limits<'_>) -> R,
    ) -> Result<R, ZoneError>;

    /// Returns a zone whose place another one may take, if there is one: see
    /// [`ZoneLimits::take_victim`].
    fn take_victim(&self) -> Option<u32>;
}

/// Calls `f` under the lock of a zone, until it has got the place that it needs under the limits.
///
/// Each time that `f` fails for want of a place, another zone is closed. Should a third have taken
/// its place when `f` is called again, then that is a step forward for the task that uses it.
pub(crate) fn with_place<Z: LockedZones, R>(
    zones: &Z,
    number: u32,
    mut f: impl FnMut(&mut ZoneState, &Z::Limits<'_>) -> Result<R, ZoneError>,
) -> Result<R, ZoneError> {
    loop {
        match zones.with_locked(number, &mut f)? {
            Err(ZoneError::NoPlace) => make_place(zones)?,
            result => return result,
        }
    }
}

/// Closes a zone, if that is still needed, so that another one may be open.
pub(crate) fn make_place(zones: &impl LockedZones) -> Result<(), ZoneError> {
    match zones.take_victim() {
        Some(victim) => zones.with_locked(victim, |zone, limits| zone.close_victim(limits)),
        None => Ok(()),
    }
}
