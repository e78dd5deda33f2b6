// SPDX-License-Identifier: GPL-2.0

//! The zones of a zoned disk.
//!
//! A request to a sequential zone is handled under the lock of that zone, from the check of the
//! write pointer to the end of the transfer. A conventional zone has no state and no lock.

mod limits;

mod state;

pub(crate) use state::Condition;

use self::{
    limits::{
        make_place,
        with_place,
        LockedZones,
        ZoneLimits, //
    },
    state::{
        Limits,
        ZoneError,
        ZoneState, //
    },
};
use crate::{
    backing::Backing,
    config::ValidatedConfig,
    slow_path::SlowPath,
    trace,
    zone_layout::{
        Zone,
        ZoneLayout, //
    },
};
use kernel::{
    block::{
        bio::Transfer,
        mq::{
            memalloc_noio,
            Context,
            Op,
            Operations,
            StartedRequest, //
        },
        zone::{
            SequentialZone,
            ZoneCondition,
            ZoneInfo,
            ZoneIsSet,
            ZoneReporter, //
        },
        BlkResult,
        BlkStatus,
        Sector,
        Sectors, //
    },
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Mutex,
        SpinLock, //
    }, //
};

/// The byte that is read where a zone was not written.
const UNWRITTEN: u8 = 0xff;

/// The most bytes that are discarded at once.
const DISCARD_LEN: u64 = 1 << 30;

/// A write needs the place of another zone under the limits.
struct NoPlace;

/// The zones of a disk.
pub(crate) struct Zones {
    layout: ZoneLayout,
    sequential: Sequential,
    /// [`None`] without limits: then no lock is shared by zones.
    limits: Option<Pin<KBox<SpinLock<ZoneLimits>>>>,
}

/// The sequential zones, each with its lock.
enum Sequential {
    /// Of a disk whose `queue_rq` may be unable to sleep.
    Spinning(KVVec<Pin<KBox<SpinLock<ZoneState>>>>),
    /// Of a disk whose `queue_rq` can sleep, and may wait for memory if it has data.
    Sleeping(KVVec<Pin<KBox<Mutex<ZoneState>>>>),
}

impl Sequential {
    fn with_capacity(count: u32, may_sleep: bool) -> Result<Self> {
        let (count, flags) = (count as usize, GFP_KERNEL | __GFP_NOWARN);
        Ok(if may_sleep {
            Self::Sleeping(KVVec::with_capacity(count, flags)?)
        } else {
            Self::Spinning(KVVec::with_capacity(count, flags)?)
        })
    }

    fn push(&mut self, state: ZoneState) -> Result {
        let flags = GFP_KERNEL | __GFP_NOWARN;
        match self {
            Self::Spinning(zones) => {
                let zone = new_spinlock!(state, "Sequential::Spinning");
                zones.push(KBox::pin_init(zone, flags)?, flags)?;
            }
            Self::Sleeping(zones) => {
                let zone = new_mutex!(state, "Sequential::Sleeping");
                zones.push(KBox::pin_init(zone, flags)?, flags)?;
            }
        }
        Ok(())
    }
}

/// The limits that a sequential zone is subject to.
pub(crate) struct LimitsOf<'a> {
    index: usize,
    zones: &'a Zones,
}

impl Limits for LimitsOf<'_> {
    fn exist(&self) -> bool {
        self.zones.limits.is_some()
    }

    #[inline]
    fn change(&self, from: Condition, to: Condition) -> Result<(), ZoneError> {
        match &self.zones.limits {
            Some(limits) => change_under(limits, self.zones.number(self.index), from, to),
            None => Ok(()),
        }
    }
}

#[inline(never)]
fn change_under(
    limits: &SpinLock<ZoneLimits>,
    number: u32,
    from: Condition,
    to: Condition,
) -> Result<(), ZoneError> {
    limits.lock().change(number, from, to)
}

impl LockedZones for Zones {
    type Limits<'a> = LimitsOf<'a>;

    /// Fails for a conventional zone.
    #[inline]
    fn with_locked<R>(
        &self,
        number: u32,
        f: impl FnOnce(&mut ZoneState, &LimitsOf<'_>) -> R,
    ) -> Result<R, ZoneError> {
        let index = self.index(number)?;
        let limits = self.limits_of(index);
        match &self.sequential {
            Sequential::Spinning(zones) => {
                let zone = zones.get(index).ok_or(ZoneError::Invalid)?;
                Ok(f(&mut zone.lock(), &limits))
            }
            Sequential::Sleeping(zones) => {
                let zone = zones.get(index).ok_or(ZoneError::Invalid)?;
                Ok(f(&mut zone.lock(), &limits))
            }
        }
    }

    fn take_victim(&self) -> Option<u32> {
        self.limits.as_ref()?.lock().take_victim()
    }
}

impl From<ZoneError> for BlkStatus {
    fn from(error: ZoneError) -> Self {
        match error {
            ZoneError::TooManyActive => Self::ZONE_ACTIVE_RESOURCE,
            ZoneError::TooManyOpen => Self::ZONE_OPEN_RESOURCE,
            ZoneError::Invalid | ZoneError::NoPlace => Self::IOERR,
        }
    }
}

impl Zones {
    /// Makes the zones of a disk that is built by `plan`.
    pub(crate) fn new(plan: &ValidatedConfig, layout: ZoneLayout) -> Result<Self> {
        let settings = &plan.settings;
        let mut sequential = Sequential::with_capacity(layout.sequential(), settings.may_sleep())?;
        for number in layout.conventional()..layout.count() {
            let zone = layout.zone(number).ok_or(EINVAL)?;
            sequential.push(ZoneState::new(zone, settings.zone_full))?;
        }
        let limits = match (settings.zone_max_open, settings.zone_max_active) {
            (0, 0) => None,
            (open, active) => {
                let limits = ZoneLimits::new(open, active)?;
                let limits = new_spinlock!(limits, "Zones::limits");
                Some(KBox::pin_init(limits, GFP_KERNEL)?)
            }
        };
        Ok(Self {
            layout,
            sequential,
            limits,
        })
    }

    fn limits_of(&self, index: usize) -> LimitsOf<'_> {
        LimitsOf { index, zones: self }
    }

    /// Returns the number of a sequential zone.
    fn number(&self, index: usize) -> u32 {
        self.layout.conventional().wrapping_add(index as u32)
    }

    /// Returns where a sequential zone is among those.
    #[inline]
    fn index(&self, number: u32) -> Result<usize, ZoneError> {
        let index = number.checked_sub(self.layout.conventional());
        Ok(index.ok_or(ZoneError::Invalid)? as usize)
    }

    /// Calls `f` with the locked state of a sequential zone, in the `queue_rq` of the disk. There
    /// is code for one kind of lock only, since `Config::may_sleep` chooses the context and the
    /// locks.
    #[inline(always)]
    fn with_locked_in<C: Context, R>(
        &self,
        index: usize,
        f: impl FnOnce(&mut ZoneState, &LimitsOf<'_>) -> R,
    ) -> Result<R, ZoneError> {
        let limits = self.limits_of(index);
        match &self.sequential {
            Sequential::Spinning(zones) if !C::MAY_SLEEP => {
                let zone = zones.get(index).ok_or(ZoneError::Invalid)?;
                Ok(f(&mut zone.lock(), &limits))
            }
            Sequential::Sleeping(zones) if C::MAY_SLEEP => {
                let zone = zones.get(index).ok_or(ZoneError::Invalid)?;
                Ok(f(&mut zone.lock(), &limits))
            }
            // The disk has another context.
            _ => Err(ZoneError::Invalid),
        }
    }

    /// Returns the number of the zone with a sector, and where it is.
    fn find(&self, at: Sector) -> Result<(u32, Zone), ZoneError> {
        let number = self.layout.number(at.0).ok_or(ZoneError::Invalid)?;
        let zone = self.layout.zone(number).ok_or(ZoneError::Invalid)?;
        Ok((number, zone))
    }

    fn is_conventional(&self, number: u32) -> bool {
        number < self.layout.conventional()
    }

    /// Handles a request. `transfer` transfers its first sectors, as many as it is told.
    // The operations are not inlined: each would pay for the registers that another needs.
    #[inline(always)]
    pub(crate) fn handle<T: Operations>(
        &self,
        rq: &mut StartedRequest<T>,
        slow_path: &SlowPath,
        backing: &Option<Backing>,
        transfer: impl Fn(&StartedRequest<T>, Sectors) -> BlkResult + Copy,
    ) -> BlkResult {
        if trace::zone_op_enabled() && matches!(rq.op(), Op::Write | Op::ZoneAppend) {
            self.trace_write(rq);
        }
        if rq.op() == Op::Write {
            let result = self.write::<_, false>(rq, slow_path, transfer);
            result.unwrap_or_else(|_| self.write_with_place::<_, false>(rq, slow_path, transfer))
        } else if rq.op() == Op::Read {
            self.read(rq, slow_path, backing, transfer)
        } else if rq.op() == Op::ZoneAppend {
            let result = self.write::<_, true>(rq, slow_path, transfer);
            result.unwrap_or_else(|_| self.write_with_place::<_, true>(rq, slow_path, transfer))
        } else if rq.op() == Op::ZoneReset {
            self.reset(rq, backing)
        } else {
            self.handle_other(rq, slow_path, backing, transfer)
        }
    }

    /// Handles one of the other requests.
    #[inline(never)]
    fn handle_other<T: Operations>(
        &self,
        rq: &StartedRequest<T>,
        slow_path: &SlowPath,
        backing: &Option<Backing>,
        transfer: impl Fn(&StartedRequest<T>, Sectors) -> BlkResult,
    ) -> BlkResult {
        match rq.op() {
            Op::Flush => transfer(rq, Sectors::ZERO),
            Op::ZoneResetAll => self.reset_all(rq, backing),
            op @ (Op::ZoneOpen | Op::ZoneClose | Op::ZoneFinish) => self.manage(op, rq),
            _ => self.read(rq, slow_path, backing, transfer),
        }
    }

    /// Writes to a zone, at the write pointer for an append. The write pointer moves as far as data
    /// was written.
    ///
    /// # Errors
    ///
    /// Another zone has to be closed first. Nothing was written then.
    #[inline(never)]
    fn write<T: Operations, const APPEND: bool>(
        &self,
        rq: &mut StartedRequest<T>,
        slow_path: &SlowPath,
        transfer: impl Fn(&StartedRequest<T>, Sectors) -> BlkResult,
    ) -> Result<BlkResult, NoPlace> {
        let Some(index) = self.layout.sequential_index(rq.sector().0) else {
            if APPEND {
                return Ok(Err(BlkStatus::IOERR));
            }
            let (len, status) = slow_path.check_bad_blocks(rq);
            return Ok(transfer(rq, len).and(status));
        };
        let result = self.with_locked_in::<T::Context, _>(index, |state, limits| {
            let at = (!APPEND).then(|| self.layout.offset(rq.sector().0));
            let at = state.begin_write(at, rq.sectors().0, limits)?;
            Ok((|| {
                if APPEND {
                    // The write pointer is in the zone, with room for the request behind it.
                    let start = state.zone().start;
                    rq.set_append_sector(Sector(start.wrapping_add(at)))?;
                }
                let (len, status) = slow_path.check_bad_blocks(rq);
                if len != Sectors::ZERO {
                    transfer(rq, len)?;
                    state.advance(len.0, limits);
                }
                status
            })())
        });
        match result {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(ZoneError::NoPlace)) => Err(NoPlace),
            Ok(Err(error)) | Err(error) => Ok(Err(error.into())),
        }
    }

    /// Writes like [`Self::write`] after closing another zone, as long as that is needed.
    #[cold]
    #[inline(never)]
    fn write_with_place<T: Operations, const APPEND: bool>(
        &self,
        rq: &mut StartedRequest<T>,
        slow_path: &SlowPath,
        transfer: impl Fn(&StartedRequest<T>, Sectors) -> BlkResult + Copy,
    ) -> BlkResult {
        loop {
            make_place(self)?;
            if let Ok(result) = self.write::<_, APPEND>(rq, slow_path, transfer) {
                return result;
            }
        }
    }

    /// Shows a write with the condition of its zone before it.
    #[cold]
    fn trace_write<T: Operations>(&self, rq: &StartedRequest<T>) {
        let Some(number) = self.layout.number(rq.sector().0) else {
            return;
        };
        let condition = if self.is_conventional(number) {
            Ok(ZoneCondition::Conventional)
        } else {
            self.with_locked(number, |state, _| reported_condition(state.condition()))
        };
        if let Ok(condition) = condition {
            trace::zone_op(rq, number, condition);
        }
    }

    /// Reads from a zone.
    #[inline(never)]
    fn read<T: Operations>(
        &self,
        rq: &StartedRequest<T>,
        slow_path: &SlowPath,
        backing: &Option<Backing>,
        transfer: impl Fn(&StartedRequest<T>, Sectors) -> BlkResult,
    ) -> BlkResult {
        let Some(index) = self.layout.sequential_index(rq.sector().0) else {
            let (len, status) = slow_path.check_bad_blocks(rq);
            return transfer(rq, len).and(status);
        };
        let at = self.layout.offset(rq.sector().0);
        self.with_locked_in::<T::Context, _>(index, |state, _| {
            state.readable(at, 0)?;
            let (len, status) = slow_path.check_bad_blocks(rq);
            if backing.is_some() {
                let written = Sectors(state.readable(at, len.0)?);
                if written != Sectors::ZERO {
                    transfer(rq, written)?;
                }
                if written < len {
                    fill_unwritten(rq, written, len);
                }
            }
            status
        })?
    }

    /// Opens, closes or finishes the zone that begins at the sector of the request.
    #[inline(never)]
    fn manage<T: Operations>(&self, op: Op, rq: &StartedRequest<T>) -> BlkResult {
        let number = self.layout.number(rq.sector().0);
        let number = number.ok_or(BlkStatus::IOERR)?;
        with_place(self, number, |state, limits| {
            match op {
                Op::ZoneOpen => state.open(limits),
                Op::ZoneClose => state.close(limits),
                _ => state.finish(limits),
            }?;
            trace::zone_op(rq, number, reported_condition(state.condition()));
            Ok(())
        })?;
        Ok(())
    }

    /// Resets the zone that begins at the sector of the request, which needs no place.
    #[inline(never)]
    fn reset<T: Operations>(&self, rq: &StartedRequest<T>, backing: &Option<Backing>) -> BlkResult {
        let index = self.layout.sequential_index(rq.sector().0);
        let index = index.ok_or(BlkStatus::IOERR)?;
        self.with_locked_in::<T::Context, _>(index, |state, limits| {
            state.reset(limits)?;
            discard(backing, state.zone())?;
            let number = self.number(index);
            trace::zone_op(rq, number, reported_condition(state.condition()));
            Ok(())
        })?
    }

    /// Resets all sequential zones but those that failed.
    #[inline(never)]
    fn reset_all<T: Operations>(
        &self,
        rq: &StartedRequest<T>,
        backing: &Option<Backing>,
    ) -> BlkResult {
        for number in self.layout.conventional()..self.layout.count() {
            self.with_locked(number, |state, limits| {
                if !state.is_reset_with_all() {
                    return Ok(());
                }
                state.reset(limits)?;
                trace::zone_op(rq, number, reported_condition(state.condition()));
                discard(backing, state.zone())
            })??;
        }
        Ok(())
    }

    /// Makes the zone with a sector read-only or offline, or empty if it is just that already.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such zone, or if it is conventional.
    pub(crate) fn toggle(
        &self,
        backing: &Option<Backing>,
        sector: Sector,
        failed: Condition,
    ) -> Result {
        let (number, zone) = self.find(sector).map_err(|_| EINVAL)?;
        // Requests wait for the lock, so memory reclaim must not wait for requests here.
        let toggled = memalloc_noio(|| {
            self.with_locked(number, |state, limits| {
                match state.toggle(failed, limits)? {
                    true => discard(backing, zone),
                    false => Ok(()),
                }
            })
        });
        Ok(toggled.map_err(|_| EINVAL)??)
    }

    /// Reports the zones that `reporter` asks for.
    pub(crate) fn report(&self, reporter: &mut ZoneReporter<'_>) -> Result {
        trace::report_zones(reporter);
        let Some(first) = reporter.next_zone() else {
            return Ok(());
        };
        let first = self.layout.number(first.start().0).ok_or(EINVAL)?;
        match first.checked_sub(self.layout.conventional()) {
            Some(first) => self.report_sequential(reporter, first as usize),
            None => self.report_both(reporter, self.layout.conventional() - first),
        }
    }

    /// Reports the next zones, of which the first `conventional` are conventional.
    #[inline(never)]
    fn report_both(&self, reporter: &mut ZoneReporter<'_>, conventional: u32) -> Result {
        for _ in 0..conventional {
            let Some(reported) = reporter.next_zone() else {
                return Ok(());
            };
            let info = ZoneInfo {
                condition: ZoneCondition::Conventional,
                capacity: reported.len(),
                write_pointer: None,
            };
            reported.report(&info)?;
        }
        self.report_sequential(reporter, 0)
    }

    /// Reports the next zones, from this sequential zone on.
    #[inline(always)]
    fn report_sequential(&self, reporter: &mut ZoneReporter<'_>, first: usize) -> Result {
        let capacity = Sectors(self.layout.capacity());
        match &self.sequential {
            Sequential::Spinning(zones) => {
                let zones = zones.get(first..).ok_or(EINVAL)?;
                reporter.report_sequential(capacity, zones, |zone, to| zone.lock().report(to))
            }
            Sequential::Sleeping(zones) => {
                let zones = zones.get(first..).ok_or(EINVAL)?;
                reporter.report_sequential(capacity, zones, |zone, to| zone.lock().report(to))
            }
        }
    }
}

impl ZoneState {
    /// Reports the state.
    #[inline]
    fn report<'z>(&self, zone: SequentialZone<'z>) -> ZoneIsSet<'z> {
        zone.set(
            reported_condition(self.condition()),
            Sectors(self.written()),
        )
    }
}

/// Returns the condition of a sequential zone as it is reported.
#[inline]
fn reported_condition(condition: Condition) -> ZoneCondition {
    match condition {
        Condition::Empty => ZoneCondition::Empty,
        Condition::ImplicitlyOpen => ZoneCondition::ImplicitlyOpen,
        Condition::ExplicitlyOpen => ZoneCondition::ExplicitlyOpen,
        Condition::Closed => ZoneCondition::Closed,
        Condition::Full => ZoneCondition::Full,
        Condition::ReadOnly => ZoneCondition::ReadOnly,
        Condition::Offline => ZoneCondition::Offline,
    }
}

/// Fills the part of a read that is behind the first `written` of `len` sectors.
#[cold]
fn fill_unwritten<T: Operations>(rq: &StartedRequest<T>, written: Sectors, len: Sectors) {
    if let Transfer::FromDisk(mut memory) = rq.transfer() {
        memory.skip_bytes(written.bytes() as u32);
        memory
            .take_bytes((len - written).bytes() as u32)
            .fill(UNWRITTEN);
    }
}

/// Discards the data of a zone.
#[inline]
fn discard(backing: &Option<Backing>, zone: Zone) -> BlkResult {
    let Some(backing) = backing else {
        return Ok(());
    };
    let (mut at, mut left) = (Sector(zone.start), Sectors(zone.len).bytes());
    while left > 0 {
        let len = left.min(DISCARD_LEN);
        backing.discard(at, len as u32)?;
        at += Sectors::from_bytes(len);
        left -= len;
    }
    Ok(())
}
