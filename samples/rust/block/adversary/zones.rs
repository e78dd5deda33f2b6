// SPDX-License-Identifier: GPL-2.0

//! What a driver says of its zones, which is right or wrong.

use super::{
    call_site::CallSite,
    data::DiskData,
    extremes,
    misuse::maybe_misuse,
    rng::Rng,
    variant::Variant, //
};
use kernel::{
    block::{
        mq::{
            Op,
            StartedRequest, //
        },
        zone::{
            ZoneCondition,
            ZoneInfo,
            ZoneReporter, //
        },
        Sector,
        Sectors, //
    },
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// The conditions of a zone that is not conventional.
const SEQUENTIAL: &[ZoneCondition] = &[
    ZoneCondition::Empty,
    ZoneCondition::ImplicitlyOpen,
    ZoneCondition::ExplicitlyOpen,
    ZoneCondition::Closed,
    ZoneCondition::Full,
    ZoneCondition::ReadOnly,
    ZoneCondition::Offline,
];

/// Describes a zone as a driver might that does it right, with the same capacity each time.
fn valid(start: Sector, len: Sectors, rng: &mut Rng) -> ZoneInfo {
    let capacity = if len.0 & 64 == 0 {
        len
    } else {
        Sectors(len.0 - len.0 / 4)
    };
    if start == Sector(0) && rng.one_in(4) {
        return ZoneInfo {
            condition: ZoneCondition::Conventional,
            capacity: len,
            write_pointer: None,
        };
    }
    let index = match rng.below(4) {
        0 => rng.below(SEQUENTIAL.len() as u64) as usize,
        _ => 0,
    };
    let condition = SEQUENTIAL.get(index).copied();
    let condition = condition.unwrap_or(ZoneCondition::Empty);
    let write_pointer = match condition {
        ZoneCondition::Empty => Some(start),
        ZoneCondition::Full => Some(start + capacity),
        ZoneCondition::ReadOnly | ZoneCondition::Offline => None,
        // Open zones and closed ones may be empty or full according to their write pointer.
        _ => Some(start + Sectors(rng.below(capacity.0 + 1))),
    };
    ZoneInfo {
        condition,
        capacity,
        write_pointer,
    }
}

/// Changes one field, mostly to what it must not be.
fn spoil(info: &mut ZoneInfo, rng: &mut Rng) {
    match rng.below(4) {
        0 => info.capacity = Sectors(extremes::edge(rng)),
        1 => info.write_pointer = Some(Sector(extremes::edge(rng))),
        2 => info.write_pointer = None,
        _ => {
            info.condition = if rng.one_in(2) {
                ZoneCondition::Conventional
            } else {
                ZoneCondition::Offline
            }
        }
    }
}

fn error(rng: &mut Rng) -> Error {
    match rng.below(4) {
        0 => EIO,
        1 => ENOMEM,
        2 => EINTR,
        _ => ENODEV,
    }
}

/// Reports some zones together, often none or all of them, in any condition.
fn report_together(reporter: &mut ZoneReporter<'_>, rng: &mut Rng) -> Result {
    let Some(len) = reporter.next_zone().map(|zone| zone.len()) else {
        return Ok(());
    };
    let capacity = match rng.below(16) {
        0 => Sectors(extremes::edge(rng)),
        _ => valid(Sector(1), len, rng).capacity,
    };
    let zones = [(); 64];
    let count = rng.below(zones.len() as u64 + 1) as usize;
    let count = if rng.one_in(2) { zones.len() } else { count };
    let zones = zones.get(..count).unwrap_or_default();
    reporter.report_sequential(capacity, zones, |(), zone| match rng.below(16) {
        0 => zone.set(ZoneCondition::Conventional, Sectors(extremes::edge(rng))),
        1 => zone.set(
            valid(Sector(1), len, rng).condition,
            Sectors(extremes::edge(rng)),
        ),
        _ => {
            let info = valid(Sector(1), len, rng);
            let written = info.write_pointer.map_or(0, |at| at.0 - 1);
            zone.set(info.condition, Sectors(written))
        }
    })
}

/// Implements `Operations::report_zones`.
pub(crate) fn report_zones<T: Variant>(
    disk: &DiskData<T>,
    reporter: &mut ZoneReporter<'_>,
) -> Result {
    let Some(shared) = &disk.shared else {
        return Ok(());
    };
    maybe_misuse(shared, CallSite::ReportZones);
    let mut rng = shared.rng_at(CallSite::ReportZones);
    if rng.one_in(16) {
        fsleep(Delta::from_micros(rng.below(5000) as i64));
    }
    // Most reports are right, so that disks are added.
    let wrong_at = if rng.one_in(4) {
        rng.below(reporter.remaining().into())
    } else {
        u64::MAX
    };
    let ignores_errors = rng.one_in(2);
    let mut count = 0;
    if rng.one_in(2) {
        let before = reporter.remaining();
        let reported = report_together(reporter, &mut rng);
        if !ignores_errors {
            reported?;
        }
        count = u64::from(before - reporter.remaining());
    }
    while let Some(zone) = reporter.next_zone() {
        let mut info = valid(zone.start(), zone.len(), &mut rng);
        if count == wrong_at {
            match rng.below(6) {
                0 => return Err(error(&mut rng)),
                1 => return Ok(()),
                2 => {
                    // The zone is passed over.
                    count += 1;
                    continue;
                }
                3 => {
                    // The zone is offered again.
                    let _ = zone.is_empty();
                    maybe_misuse(shared, CallSite::ReportZones);
                    count += 1;
                    continue;
                }
                _ => spoil(&mut info, &mut rng),
            }
        }
        count += 1;
        let reported = zone.report(&info);
        if !ignores_errors {
            reported?;
        }
    }
    // Nothing more is wanted.
    if reporter.next_zone().is_some() || reporter.remaining() != 0 {
        pr_err!("a zone report has zones left\n");
    }
    maybe_misuse(shared, CallSite::ReportZones);
    Ok(())
}

/// Tells where a request has been written to, mostly where it cannot have been.
pub(crate) fn set_append_sector<T: Variant>(rq: &mut StartedRequest<T>, rng: &mut Rng) {
    let sector = rq.sector();
    for _ in 0..rng.below(4) {
        let at = match rng.below(4) {
            0 => Sector(extremes::edge(rng)),
            1 => Sector(sector.0.wrapping_sub(rng.below(16))),
            _ => sector + Sectors(rng.below(4096)),
        };
        let set = rq.set_append_sector(at);
        if set.is_ok() && (rq.op() != Op::ZoneAppend || rq.sector() != at) {
            pr_err!("the position of a request is not that which was set\n");
        }
    }
}
