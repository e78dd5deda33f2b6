// SPDX-License-Identifier: GPL-2.0

//! The state machine of a sequential zone.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.
//!
//! Positions are in sectors from the start of the zone. Each operation either succeeds, or leaves
//! the zone unchanged.

use crate::zone_layout::Zone;

/// The condition of a sequential zone, with the numbers that users see. So it takes no instructions
/// to report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Condition {
    /// Nothing is written.
    Empty = 1,
    /// A write has opened it.
    ImplicitlyOpen = 2,
    /// The user has opened it.
    ExplicitlyOpen = 3,
    /// A part is written, and it is not open.
    Closed = 4,
    /// Made read-only by the attribute.
    ReadOnly = 13,
    /// Nothing can be written until it is reset.
    Full = 14,
    /// Made inaccessible by the attribute.
    Offline = 15,
}

impl Condition {
    /// Whether the zone is one that failed: it accepts no operation.
    pub(crate) fn is_failed(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Offline)
    }
}

/// Why an operation on a zone was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneError {
    /// The zone does not accept it in its condition, or not at this position.
    Invalid,
    /// Too many zones are active.
    TooManyActive,
    /// Too many zones are open, and none may be closed.
    TooManyOpen,
    /// Too many zones are open. Closing one that is implicitly open makes a place.
    NoPlace,
}

/// The limits that a zone is subject to.
pub(crate) trait Limits {
    /// Whether there is any limit.
    fn exist(&self) -> bool;

    /// Accounts for a change of the zone's condition. After an error it must not change.
    fn change(&self, from: Condition, to: Condition) -> Result<(), ZoneError>;
}

/// The state of a sequential zone.
///
/// # Invariants
///
/// The write pointer is in front of the capacity, unless the zone is full, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneState {
    zone: Zone,
    condition: Condition,
    /// The write pointer. A zone that failed has none.
    written: u64,
}

impl ZoneState {
    /// Returns the state of a zone after power-on, which is empty or full.
    pub(crate) fn new(zone: Zone, full: bool) -> Self {
        if full {
            Self {
                zone,
                condition: Condition::Full,
                written: zone.capacity,
            }
        } else {
            Self {
                zone,
                condition: Condition::Empty,
                written: 0,
            }
        }
    }

    /// Returns where the zone is.
    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns the condition.
    pub(crate) fn condition(&self) -> Condition {
        self.condition
    }

    /// Returns the write pointer. That of a zone that failed has no meaning.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    #[inline]
    fn change(&mut self, to: Condition, limits: &impl Limits) -> Result<(), ZoneError> {
        limits.change(self.condition, to)?;
        self.condition = to;
        Ok(())
    }

    /// Prepares a write of `len` sectors at `at`, or at the write pointer if that is [`None`].
    /// Returns its position. An empty or closed zone becomes implicitly open.
    ///
    /// The write pointer does not move before [`Self::advance`].
    #[inline]
    pub(crate) fn begin_write(
        &mut self,
        at: Option<u64>,
        len: u64,
        limits: &impl Limits,
    ) -> Result<u64, ZoneError> {
        let pointer = self.written;
        let is_open = match self.condition {
            Condition::ImplicitlyOpen | Condition::ExplicitlyOpen => true,
            Condition::Empty | Condition::Closed => false,
            _ => return Err(ZoneError::Invalid),
        };
        // By the type invariant it is in front of the capacity.
        let room = self.zone.capacity.wrapping_sub(pointer);
        if at.unwrap_or(pointer) != pointer || len > room {
            return Err(ZoneError::Invalid);
        }
        if !is_open {
            self.change(Condition::ImplicitlyOpen, limits)?;
        }
        Ok(pointer)
    }

    /// Moves the write pointer after `len` sectors were written. The zone gets full at its
    /// capacity.
    ///
    /// [`Self::begin_write`] has succeeded for at least as many, and nothing was done to the zone
    /// since.
    #[inline]
    pub(crate) fn advance(&mut self, len: u64, limits: &impl Limits) {
        self.written = self.written.wrapping_add(len);
        if self.written == self.zone.capacity {
            // Always succeeds for an open zone.
            let _ = self.change(Condition::Full, limits);
        }
    }

    /// Returns how many of the `len` sectors from `at` on are in front of the write pointer. A
    /// read-only zone keeps its data, and has no write pointer.
    #[inline]
    pub(crate) fn readable(&self, at: u64, len: u64) -> Result<u64, ZoneError> {
        match self.condition {
            Condition::Offline => Err(ZoneError::Invalid),
            Condition::ReadOnly => Ok(len),
            _ => Ok(self.written.saturating_sub(at).min(len)),
        }
    }

    /// Opens the zone explicitly.
    pub(crate) fn open(&mut self, limits: &impl Limits) -> Result<(), ZoneError> {
        match self.condition {
            Condition::ExplicitlyOpen => Ok(()),
            Condition::Empty | Condition::ImplicitlyOpen | Condition::Closed => {
                self.change(Condition::ExplicitlyOpen, limits)
            }
            Condition::Full | Condition::ReadOnly | Condition::Offline => Err(ZoneError::Invalid),
        }
    }

    /// Closes the zone. If nothing is written to it, it is empty again.
    pub(crate) fn close(&mut self, limits: &impl Limits) -> Result<(), ZoneError> {
        match self.condition {
            Condition::Closed => Ok(()),
            Condition::ImplicitlyOpen | Condition::ExplicitlyOpen => {
                let to = match self.written {
                    0 => Condition::Empty,
                    _ => Condition::Closed,
                };
                self.change(to, limits)
            }
            _ => Err(ZoneError::Invalid),
        }
    }

    /// Closes the zone for the sake of another, unless it is no longer implicitly open.
    pub(crate) fn close_victim(&mut self, limits: &impl Limits) {
        if self.condition == Condition::ImplicitlyOpen {
            // Always succeeds for an open zone.
            let _ = self.close(limits);
        }
    }

    /// Makes the zone full, whatever is written to it. As in null_blk, a zone that is not open has
    /// to get a place under the limits for it, and one that is full already keeps its write pointer
    /// if there are limits.
    pub(crate) fn finish(&mut self, limits: &impl Limits) -> Result<(), ZoneError> {
        match self.condition {
            Condition::ReadOnly | Condition::Offline => return Err(ZoneError::Invalid),
            Condition::Full if limits.exist() => return Ok(()),
            _ => self.change(Condition::Full, limits)?,
        }
        self.written = self.zone.len;
        Ok(())
    }

    /// Makes the zone empty. Its data is to be discarded then.
    #[inline]
    pub(crate) fn reset(&mut self, limits: &impl Limits) -> Result<(), ZoneError> {
        if self.condition.is_failed() {
            return Err(ZoneError::Invalid);
        }
        self.change(Condition::Empty, limits)?;
        self.written = 0;
        Ok(())
    }

    /// Whether a reset of all zones resets this one.
    pub(crate) fn is_reset_with_all(&self) -> bool {
        !self.condition.is_failed() && self.condition != Condition::Empty
    }

    /// Makes the zone read-only or offline, or empty again if it is just that already. Returns
    /// whether it is empty, so that its data is to be discarded.
    pub(crate) fn toggle(
        &mut self,
        failed: Condition,
        limits: &impl Limits,
    ) -> Result<bool, ZoneError> {
        let repaired = self.condition == failed;
        self.change(if repaired { Condition::Empty } else { failed }, limits)?;
        self.written = 0;
        Ok(repaired)
    }
}
