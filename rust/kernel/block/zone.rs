// SPDX-License-Identifier: GPL-2.0

//! The zones of a disk, as a driver reports them.
//!
//! A zoned disk is divided into zones of one size. A conventional zone can be written anywhere, the
//! others have to be written sequentially, at their write pointer. The driver describes its zones
//! in [`Operations::report_zones`]. The block layer asks for them before the disk is added, and
//! again for users.
//!
//! The limits of a zoned disk are in [`QueueLimits`]. Zones are managed by requests: see [`Op`].
//!
//! [`Op`]: crate::block::mq::Op
//! [`Operations::report_zones`]: crate::block::mq::Operations::report_zones
//! [`QueueLimits`]: crate::block::limits::QueueLimits
//!
//! C headers: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h),
//! [`include/uapi/linux/blkzoned.h`](srctree/include/uapi/linux/blkzoned.h)

use crate::{
    bindings,
    block::{
        Sector,
        Sectors, //
    },
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        srcu_fast::SrcuFast, //
    },
    trace::TraceArg, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    slice, //
};

/// The condition of a zone: C's `enum blk_zone_cond`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum ZoneCondition {
    /// The zone is conventional: it has no write pointer.
    Conventional = bindings::blk_zone_cond_BLK_ZONE_COND_NOT_WP as u8,
    /// Nothing is written.
    Empty = bindings::blk_zone_cond_BLK_ZONE_COND_EMPTY as u8,
    /// The zone was opened by a write.
    ImplicitlyOpen = bindings::blk_zone_cond_BLK_ZONE_COND_IMP_OPEN as u8,
    /// The zone was opened by a request.
    ExplicitlyOpen = bindings::blk_zone_cond_BLK_ZONE_COND_EXP_OPEN as u8,
    /// The zone is partly written, but not open.
    Closed = bindings::blk_zone_cond_BLK_ZONE_COND_CLOSED as u8,
    /// Nothing can be written.
    Full = bindings::blk_zone_cond_BLK_ZONE_COND_FULL as u8,
    /// The zone can only be read, and has no write pointer.
    ReadOnly = bindings::blk_zone_cond_BLK_ZONE_COND_READONLY as u8,
    /// The zone can neither be read nor written, and has no write pointer.
    Offline = bindings::blk_zone_cond_BLK_ZONE_COND_OFFLINE as u8,
}

impl ZoneCondition {
    /// The conditions without a write pointer, each a bit.
    const WITHOUT_WRITE_POINTER: u32 =
        1 << Self::Conventional as u8 | 1 << Self::ReadOnly as u8 | 1 << Self::Offline as u8;

    #[inline]
    fn has_write_pointer(self) -> bool {
        Self::WITHOUT_WRITE_POINTER.wrapping_shr(self as u32) & 1 == 0
    }
}

// SAFETY: It is a plain value.
unsafe impl TraceArg for ZoneCondition {
    type Raw = bindings::blk_zone_cond;

    #[inline]
    fn into_raw(self) -> bindings::blk_zone_cond {
        self as bindings::blk_zone_cond
    }
}

/// What a driver reports about a zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ZoneInfo {
    /// The condition.
    pub condition: ZoneCondition,
    /// The number of sectors that can be written, from the start of the zone on. That of a
    /// conventional zone is its length, and all others have the same, but for the last zone of the
    /// disk.
    pub capacity: Sectors,
    /// The position of the next write, at most the end of the zone. [`None`] if the condition says
    /// that there is none.
    pub write_pointer: Option<Sector>,
}

impl ZoneInfo {
    /// Returns C's structure for a zone.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the zone cannot have this capacity or this write pointer.
    #[inline]
    fn as_raw(&self, start: Sector, len: Sectors) -> Result<bindings::blk_zone> {
        let conventional = self.condition == ZoneCondition::Conventional;
        let write_pointer = match self.write_pointer {
            // A position in front of the zone is far behind it.
            Some(at) => {
                let valid = at.0.wrapping_sub(start.0) <= len.0;
                (valid && self.condition.has_write_pointer()).then_some(at.0)
            }
            None => {
                // The end of the zone.
                let end = start.0.wrapping_add(len.0);
                let raw = if conventional { end } else { u64::MAX };
                (!self.condition.has_write_pointer()).then_some(raw)
            }
        };
        // A capacity of zero becomes the largest number.
        let capacity_fits = self.capacity.0.wrapping_sub(1) < len.0;
        let (true, Some(write_pointer)) = (capacity_fits, write_pointer) else {
            return Err(EINVAL);
        };
        let kind = if conventional {
            if self.capacity != len {
                return Err(EINVAL);
            }
            bindings::blk_zone_type_BLK_ZONE_TYPE_CONVENTIONAL
        } else {
            bindings::blk_zone_type_BLK_ZONE_TYPE_SEQWRITE_REQ
        };
        Ok(bindings::blk_zone {
            start: start.0,
            len: len.0,
            wp: write_pointer,
            type_: kind as u8,
            cond: self.condition as u8,
            capacity: self.capacity.0,
            ..pin_init::zeroed()
        })
    }
}

/// A sequential zone whose state is to be set, see [`ZoneReporter::report_sequential`].
pub struct SequentialZone<'z> {
    /// The length is set.
    raw: &'z mut bindings::blk_zone,
    start: Sector,
    /// No other zone has this lifetime.
    _invariant: PhantomData<fn(&'z ()) -> &'z ()>,
}

/// The proof that the state of the zone with this lifetime was set.
pub struct ZoneIsSet<'z>(PhantomData<fn(&'z ()) -> &'z ()>);

impl<'z> SequentialZone<'z> {
    /// Sets the state: the condition, and the position of the next write in the zone.
    ///
    /// A position behind the zone counts as its end. It has no meaning in a condition without a
    /// write pointer. [`ZoneCondition::Conventional`] counts as [`ZoneCondition::Offline`], since
    /// the zone is sequential.
    #[inline(always)]
    pub fn set(self, condition: ZoneCondition, written: Sectors) -> ZoneIsSet<'z> {
        let Self { raw, start, .. } = self;
        raw.start = start.0;
        raw.cond = condition as u8;
        if condition.has_write_pointer() && written.0 <= raw.len {
            raw.wp = start.0.wrapping_add(written.0);
        } else {
            set_rare(raw, condition);
        }
        ZoneIsSet(PhantomData)
    }
}

/// Sets the write pointer, and the condition if it cannot stay, of a zone that has no write pointer
/// or one behind it.
// Nothing but the call is where the state of most zones is set.
#[cold]
#[inline(never)]
fn set_rare(raw: &mut bindings::blk_zone, condition: ZoneCondition) {
    if condition.has_write_pointer() {
        raw.wp = raw.start.wrapping_add(raw.len);
        return;
    }
    raw.wp = u64::MAX;
    if condition == ZoneCondition::Conventional {
        raw.cond = ZoneCondition::Offline as u8;
    }
}

/// What a zone report is made with, which is lent to [`Operations::report_zones`].
///
/// It names the zones that are wanted, one after the other, so that a driver cannot report another
/// one, or one of them twice.
///
/// # Examples
///
/// A driver whose zones are all empty:
///
/// ```
/// # use kernel::{block::mq::*, prelude::*};
/// use kernel::{
///     block::{
///         gendisk::GenDiskBuilder,
///         limits::QueueLimits,
///         zone::{ZoneCondition, ZoneInfo, ZoneReporter},
///         Sectors,
///     },
///     sync::static_lock_class,
/// };
///
/// struct Zoned;
///
/// #[vtable]
/// impl Operations for Zoned {
///     fn report_zones(_queue: &(), reporter: &mut ZoneReporter<'_>) -> Result {
///         while let Some(zone) = reporter.next_zone() {
///             let info = ZoneInfo {
///                 condition: ZoneCondition::Empty,
///                 capacity: zone.len(),
///                 write_pointer: Some(zone.start()),
///             };
///             zone.report(&info)?;
///         }
///         Ok(())
///     }
/// #     type Context = Blocking;
/// #     type TagSetData = ();
/// #     type QueueData = ();
/// #     type HwData = ();
/// #     type RequestData = ();
/// #     type Timer = NoTimer;
/// #
/// #     fn init_hw_queue(_: &(), _: &(), _: u32) -> impl PinInit<(), Error> {
/// #         Ok(())
/// #     }
/// #
/// #     fn init_request(_: &()) -> impl PinInit<()> {}
///     // ...
/// #
/// #     fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
/// #         rq.start().end(Ok(()));
/// #         Ok(())
/// #     }
/// }
///
/// let tags = TagSet::<Zoned>::new(TagSetOptions::default(), Ok(()))?;
/// let limits = QueueLimits {
///     zoned: true,
///     chunk_sectors: Sectors::from_mebibytes(1),
///     max_hw_zone_append_sectors: Sectors(128),
///     ..QueueLimits::default()
/// };
/// # if !cfg!(CONFIG_BLK_DEV_ZONED) { return Ok(()); }
/// let disk = GenDiskBuilder::new(tags, static_lock_class!())
///     .limits(limits)
///     .capacity(Sectors::from_mebibytes(10))
///     .build(c"rust_doc_zones", Ok(()))?
///     .add()?;
/// # drop(disk);
/// # Ok::<(), Error>(())
/// ```
///
/// [`Operations::report_zones`]: crate::block::mq::Operations::report_zones
///
/// # Invariants
///
/// For `'a`, `disk` is valid, and `args` is what C has passed with it to the running
/// `report_zones`. If there is no error yet, all zones from the first one that C wants up to
/// `next`, of which there are `index`, were reported. `next` is where the next `remaining` zones
/// begin, of which each is on the disk, and wanted by C. It is in front of `end` unless there are
/// none. After an error there are none.
pub struct ZoneReporter<'a> {
    disk: NonNull<bindings::gendisk>,
    args: *mut bindings::blk_report_zones_args,
    zone_size: Sectors,
    /// The end of the disk.
    end: Sector,
    next: Sector,
    index: u32,
    /// The number of zones that are still to be reported.
    remaining: u32,
    result: Result,
    _call: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a> ZoneReporter<'a> {
    /// Returns how many zones are still to be reported; zero after an error.
    #[inline]
    pub fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Returns the next zone that is to be reported. A zone that is not reported is returned again.
    ///
    /// Returns [`None`] if no further zone is wanted, or after an error.
    #[inline]
    pub fn next_zone(&mut self) -> Option<UnreportedZone<'_, 'a>> {
        // INVARIANT: There is one.
        (self.remaining != 0).then_some(UnreportedZone { reporter: self })
    }

    /// Reports the next zones, all of which are sequential.
    ///
    /// `zones` are those from the next one on. `set_state` is called for each of them in turn,
    /// until no further zone is wanted. Each has the same capacity, but for a last zone of the disk
    /// that is shorter than it: this one can be written up to its end.
    ///
    /// This takes fewer instructions than a loop of [`Self::next_zone`] and
    /// [`UnreportedZone::report`]. The caller must not hold a lock that requests take; `set_state`
    /// may take one. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no zone can have this capacity. Other errors are those of the code that a zone
    /// is passed to. After any error the zone report has failed, as with
    /// [`UnreportedZone::report`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use kernel::{block::{zone::*, Sectors}, prelude::*};
    /// const CAPACITY: Sectors = Sectors(128);
    ///
    /// /// Reports zones that are never open, of which `first` is the next one.
    /// fn report(reporter: &mut ZoneReporter<'_>, first: usize, written: &[Sectors]) -> Result {
    ///     let zones = written.get(first..).ok_or(EINVAL)?;
    ///     reporter.report_sequential(CAPACITY, zones, |&written, zone| {
    ///         let condition = match written {
    ///             Sectors::ZERO => ZoneCondition::Empty,
    ///             CAPACITY => ZoneCondition::Full,
    ///             _ => ZoneCondition::Closed,
    ///         };
    ///         zone.set(condition, written)
    ///     })
    /// }
    /// ```
    #[inline]
    pub fn report_sequential<Z>(
        &mut self,
        capacity: Sectors,
        zones: &[Z],
        mut set_state: impl for<'z> FnMut(&Z, SequentialZone<'z>) -> ZoneIsSet<'z>,
    ) -> Result {
        if self.remaining == 0 {
            return self.result;
        }
        // A capacity of zero becomes the largest number.
        if capacity.0.wrapping_sub(1) >= self.zone_size.0 {
            return self.fail(EINVAL);
        }
        let count = zones.len().min(self.remaining as usize);
        let zones = zones.get(..count).unwrap_or_default();
        // The product is less than 2^63.
        let len = (count as u64).wrapping_mul(self.zone_size.0);
        if len > self.end.0.wrapping_sub(self.next.0) {
            return self.report_up_to_end(capacity, zones, &mut set_state);
        }
        // SAFETY: There are as many zones of this size up to the end of the disk.
        unsafe { self.report_run(self.zone_size, capacity, zones, &mut set_state) }
    }

    /// Reports zones for [`Self::report_sequential`], of which the last one is shorter.
    #[cold]
    #[inline(never)]
    fn report_up_to_end<Z>(
        &mut self,
        capacity: Sectors,
        zones: &[Z],
        set_state: &mut impl for<'z> FnMut(&Z, SequentialZone<'z>) -> ZoneIsSet<'z>,
    ) -> Result {
        let Some((last, others)) = zones.split_last() else {
            return Ok(());
        };
        // SAFETY: By the type invariants, these zones are on the disk, of which only the last one
        // may be shorter.
        unsafe { self.report_run(self.zone_size, capacity, others, set_state) }?;
        let len = Sectors(self.end.0.wrapping_sub(self.next.0));
        // SAFETY: As was just said.
        unsafe { self.report_run(len, capacity.min(len), slice::from_ref(last), set_state) }
    }

    /// Reports zones for [`Self::report_sequential`].
    ///
    /// # Safety
    ///
    /// The zones are the next ones of those that remain to be reported, and have `len` sectors.
    // Not inlined, so that the loop has all registers.
    #[inline(never)]
    unsafe fn report_run<Z>(
        &mut self,
        len: Sectors,
        capacity: Sectors,
        zones: &[Z],
        set_state: &mut impl for<'z> FnMut(&Z, SequentialZone<'z>) -> ZoneIsSet<'z>,
    ) -> Result {
        let (mut next, mut index) = (self.next, self.index);
        // C does not change these fields.
        let mut raw = bindings::blk_zone {
            len: len.0,
            type_: bindings::blk_zone_type_BLK_ZONE_TYPE_SEQWRITE_REQ as u8,
            capacity: capacity.0,
            ..pin_init::zeroed()
        };
        for zone in zones {
            let unset = SequentialZone {
                raw: &mut raw,
                start: next,
                _invariant: PhantomData,
            };
            let ZoneIsSet(_) = set_state(zone, unset);
            // SAFETY: By the type invariants and the safety requirements. The zone is on the disk,
            // and `index` is less than the number of zones that C wants.
            let result = unsafe {
                bindings::blk_report_zone(self.disk.as_ptr(), &mut raw, index, self.args)
            };
            if result < 0 {
                return self.fail(Error::from_errno(result));
            }
            next = Sector(next.0.wrapping_add(len.0));
            index = index.wrapping_add(1);
        }
        // INVARIANT: These zones were just reported, one after the other. By the safety
        // requirements there are no more of them than remain.
        self.next = next;
        self.index = index;
        self.remaining = self.remaining.wrapping_sub(zones.len() as u32);
        Ok(())
    }

    /// Ends the report.
    #[cold]
    fn fail(&mut self, error: Error) -> Result {
        // INVARIANT: No zones remain.
        self.remaining = 0;
        self.result = Err(error);
        self.result
    }
}

// SAFETY: By the type invariant, the disk is valid for as long as the reference is. The builder of
// a disk names it before it asks for zones.
unsafe impl TraceArg for &ZoneReporter<'_> {
    type Raw = *mut bindings::gendisk;

    #[inline]
    fn into_raw(self) -> *mut bindings::gendisk {
        self.disk.as_ptr()
    }
}

/// A zone that is to be reported.
///
/// # Invariants
///
/// Zones remain to be reported, of which this is the next one.
#[must_use = "a zone report ends at the first zone that is not reported"]
pub struct UnreportedZone<'r, 'a> {
    reporter: &'r mut ZoneReporter<'a>,
}

impl UnreportedZone<'_, '_> {
    /// Returns the first sector.
    #[inline]
    pub fn start(&self) -> Sector {
        self.reporter.next
    }

    /// Returns the length: the zone size, or less for the last zone of the disk.
    #[inline]
    pub fn len(&self) -> Sectors {
        // By the type invariant of [`ZoneReporter`], the zone is in front of the end.
        let rest = self.reporter.end.0.wrapping_sub(self.reporter.next.0);
        Sectors(rest).min(self.reporter.zone_size)
    }

    /// Returns whether the zone has no sectors, which is never so.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Reports the zone.
    ///
    /// This may sleep, and passes the zone to code that may submit I/O to the disk and wait for it.
    /// So no lock may be held that requests take.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the zone cannot have the capacity or the write pointer of `info`. Other errors
    /// are those of the code that the zone is passed to. After any error the zone report has
    /// failed: no further zone is wanted, and it ends with that error whatever the driver returns.
    #[inline]
    pub fn report(self, info: &ZoneInfo) -> Result {
        let (start, len) = (self.start(), self.len());
        let Self { reporter } = self;
        let mut raw = match info.as_raw(start, len) {
            Ok(raw) => raw,
            Err(error) => return reporter.fail(error),
        };
        // SAFETY: By the type invariants. The zone is on the disk, and `index` is less than the
        // number of zones that C wants.
        let result = unsafe {
            bindings::blk_report_zone(
                reporter.disk.as_ptr(),
                &mut raw,
                reporter.index,
                reporter.args,
            )
        };
        if result < 0 {
            return reporter.fail(Error::from_errno(result));
        }
        // INVARIANT: The zone was just reported. The next one begins behind it, unless it was the
        // last. None of the sums exceeds the end of the disk, or the number of its zones.
        reporter.next = Sector(start.0.wrapping_add(len.0));
        reporter.index = reporter.index.wrapping_add(1);
        reporter.remaining = reporter.remaining.wrapping_sub(1);
        Ok(())
    }
}

/// Calls a driver for a zone report.
///
/// # Safety
///
/// The argument is the queue of a disk whose driver provided the function, and whose data is not
/// dropped meanwhile.
pub(crate) type ReportCallback =
    unsafe fn(*const bindings::request_queue, &mut ZoneReporter<'_>) -> Result;

/// The name of a lock class, which must have one address. A literal would be copied to each crate
/// that the initialiser is instantiated in.
static RUNNING_NAME: &CStr = c"ZoneReports::running";

/// The zone reports of a disk, which end when the disk is removed.
///
/// A task that has the disk open may ask for a report at any time, also after the disk was removed.
///
/// # Invariants
///
/// `zone_size` is a power of two, and the number of zones up to `end` fits into an `int`.
#[pin_data]
pub(crate) struct ZoneReports {
    callback: ReportCallback,
    zone_size: Sectors,
    end: Sector,
    /// Written once, before the data of the driver is dropped.
    removed: Atomic<bool>,
    /// The reports that are running.
    #[pin]
    running: SrcuFast,
}

impl ZoneReports {
    /// Prepares for reports of a disk with this capacity, whose zone size is a power of two. The
    /// number of zones fits into an `int`.
    pub(crate) fn new(
        zone_size: Sectors,
        capacity: Sectors,
        callback: ReportCallback,
    ) -> impl PinInit<Self, Error> {
        // INVARIANT: The caller ensures it.
        try_pin_init!(Self {
            callback,
            zone_size,
            end: Sector(0) + capacity,
            removed: Atomic::new(false),
            running <- SrcuFast::new(RUNNING_NAME, static_lock_class!()),
        })
    }

    /// Reports at most `wanted` zones, from that with `sector` on. Returns their number.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the disk was removed, else those of the driver, or of the code that gets the
    /// zones.
    ///
    /// # Safety
    ///
    /// These are the zone reports of `disk`, which is valid, and whose driver's data is not dropped
    /// before [`Self::stop`] has returned. C has passed `args` to `report_zones`.
    pub(crate) unsafe fn report(
        &self,
        disk: NonNull<bindings::gendisk>,
        sector: Sector,
        wanted: u32,
        args: *mut bindings::blk_report_zones_args,
    ) -> Result<u32> {
        self.running.read(|| {
            if self.removed.load(Relaxed) {
                return Err(ENODEV);
            }
            // By the type invariant, the zone size is a power of two, and the number of zones of a
            // disk fits into an `int`.
            let in_zone = self.zone_size.0.wrapping_sub(1);
            let next = Sector(sector.0 & !in_zone);
            let behind = (self.end - next).0.wrapping_add(in_zone);
            let on_disk = (behind >> self.zone_size.0.trailing_zeros()) as u32;
            // INVARIANT: By the safety requirement. Nothing is reported yet.
            let mut reporter = ZoneReporter {
                disk,
                args,
                zone_size: self.zone_size,
                end: self.end,
                next,
                index: 0,
                remaining: wanted.min(on_disk),
                result: Ok(()),
                _call: PhantomData,
            };
            // SAFETY: By the safety requirement.
            let queue = unsafe { (*disk.as_ptr()).queue };
            // SAFETY: By the safety requirement. `stop` waits for this read-side critical section,
            // or was called before, which was just ruled out.
            let reported = unsafe { (self.callback)(queue, &mut reporter) };
            reporter.result.and(reported)?;
            Ok(reporter.index)
        })
    }

    /// Waits for the reports that are running. All later ones fail.
    pub(crate) fn stop(&self) {
        self.removed.store(true, Relaxed);
        self.running.synchronize();
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_zone)]
mod tests {
    use super::*;

    const START: Sector = Sector(100);
    const LEN: Sectors = Sectors(20);

    fn info(condition: ZoneCondition, capacity: u64, at: Option<u64>) -> ZoneInfo {
        ZoneInfo {
            condition,
            capacity: Sectors(capacity),
            write_pointer: at.map(Sector),
        }
    }

    fn as_raw(info: ZoneInfo) -> Result<bindings::blk_zone> {
        info.as_raw(START, LEN)
    }

    #[test]
    fn zones_are_those_of_c() -> Result {
        let open = as_raw(info(ZoneCondition::ImplicitlyOpen, 15, Some(107)))?;
        assert_eq!(
            (open.start, open.len, open.capacity, open.wp),
            (100, 20, 15, 107)
        );
        assert_eq!((open.type_, open.cond), (2, 2));
        let conventional = as_raw(info(ZoneCondition::Conventional, 20, None))?;
        assert_eq!(
            (conventional.type_, conventional.cond, conventional.wp),
            (1, 0, 120)
        );
        let offline = as_raw(info(ZoneCondition::Offline, 15, None))?;
        assert_eq!((offline.type_, offline.cond, offline.wp), (2, 15, u64::MAX));
        Ok(())
    }

    #[test]
    fn sequential_zones_are_those_of_c() {
        use ZoneCondition::*;

        let wp = |condition, written| {
            let mut raw = bindings::blk_zone {
                len: LEN.0,
                ..pin_init::zeroed()
            };
            let zone = SequentialZone {
                raw: &mut raw,
                start: START,
                _invariant: PhantomData,
            };
            let ZoneIsSet(_) = zone.set(condition, Sectors(written));
            let reported = match condition {
                Conventional => Offline,
                other => other,
            };
            assert_eq!((raw.start, raw.cond), (100, reported as u8));
            raw.wp
        };
        assert_eq!((wp(Empty, 0), wp(Closed, 7), wp(Full, 15)), (100, 107, 115));
        assert_eq!((wp(Full, 20), wp(ExplicitlyOpen, 20)), (120, 120));
        assert_eq!((wp(Full, 21), wp(Closed, u64::MAX)), (120, 120));
        for condition in [Conventional, ReadOnly, Offline] {
            assert_eq!((wp(condition, 0), wp(condition, 21)), (u64::MAX, u64::MAX));
        }
    }

    #[test]
    fn impossible_zones_are_rejected() {
        use ZoneCondition::*;

        for (zone, valid) in [
            (info(Empty, 20, Some(100)), true),
            (info(Full, 15, Some(120)), true),
            (info(Empty, 0, Some(100)), false),
            (info(Empty, 21, Some(100)), false),
            (info(Empty, 20, Some(99)), false),
            (info(Full, 20, Some(121)), false),
            (info(Closed, 20, None), false),
            (info(Conventional, 19, None), false),
            (info(Conventional, 20, Some(100)), false),
            (info(ReadOnly, 15, None), true),
            (info(ReadOnly, 15, Some(100)), false),
        ] {
            assert_eq!(as_raw(zone).is_ok(), valid);
        }
    }
}
