// SPDX-License-Identifier: GPL-2.0

//! Tests of the zones of the model.

use super::*;

/// A disk of 8 MiB with a conventional zone, and zones of 1 MiB.
fn zones(settings: &[(&'static str, u64)], is_null_blk: bool) -> Zones {
    let mut all = Settings::default();
    for (name, value) in [("size", 8), ("zone_size", 1), ("zone_capacity", 1)] {
        all.set(name, value);
    }
    all.set("zone_nr_conv", 1);
    settings
        .iter()
        .for_each(|(name, value)| all.set(name, *value));
    Zones::new(&all, is_null_blk, Phantoms::default())
}

fn write(zones: &mut Zones, sector: u64, count: u64) -> Result<(), &'static str> {
    zones.begin_write(sector, count, false)?;
    zones.end_write(sector, count, true);
    Ok(())
}

fn conditions(zones: &Zones) -> Vec<Condition> {
    zones.all()[1..5]
        .iter()
        .map(|zone| zone.condition)
        .collect()
}

#[test]
fn zones_are_divided_and_shown() {
    let mut short = zones(
        &[("size", 3), ("zone_size", 2), ("zone_capacity", 2)],
        false,
    );
    let last = "2097152+1048576/1048576@2097152:empty";
    let all = format!("ok 0+2097152/2097152@2097152:conventional {last}");
    assert_eq!(short.report(0, 9), all);
    assert_eq!(short.report(6143, 1), format!("ok {last}"));
    assert_eq!(short.report(6144, 1), "ok");
    let full = zones(
        &[("zone_size", 2), ("zone_full", 1), ("zone_nr_conv", 0)],
        false,
    );
    assert_eq!((full.all()[3].written, full.all()[3].len), (2048, 4096));
    assert!(full.is_written(2047) && !full.is_written(2048));
}

#[test]
fn writes_are_at_the_write_pointer() {
    let mut zones = zones(&[], false);
    assert_eq!(write(&mut zones, 100, 8), Ok(()));
    assert_eq!(write(&mut zones, 2048, 8), Ok(()));
    assert_eq!(write(&mut zones, 2064, 8), Err("EIO"));
    // The block layer has to be told where the write pointer is.
    assert_eq!(write(&mut zones, 2056, 8), Err("EIO"));
    assert!(zones.find(2048).is_lost());
    zones.report(2048, 1);
    assert_eq!(write(&mut zones, 2056, 2040), Ok(()));
    assert_eq!(conditions(&zones)[0], Full);
    assert_eq!(write(&mut zones, 2048, 8), Err("EIO"));
    // A part of a request is written, and the zone is filled as far as the block layer knows.
    assert_eq!(zones.begin_write(4096, 2048, false), Ok(()));
    zones.end_write(4096, 100, false);
    assert_eq!(write(&mut zones, 4196, 8), Ok(()));
}

#[test]
fn a_report_does_not_tell_of_what_was_refused_later() {
    let limits = [("zone_nr_conv", 0), ("zone_size", 2)];
    for (delayed, is_accepted) in [(false, true), (true, false)] {
        let mut zones = zones(&limits, false);
        // The first write to a zone, behind the capacity.
        assert_eq!(zones.begin_write(4096 + 2048, 8, delayed), Err("EIO"));
        assert_eq!(zones.find(4096).is_lost(), !delayed);
        zones.report(0, 9);
        assert_eq!(write(&mut zones, 4096, 8).is_ok(), is_accepted);
        // That was not delayed.
        zones.report(0, 9);
        assert_eq!(
            write(&mut zones, 4096 + 8 * u64::from(is_accepted), 8),
            Ok(())
        );
    }
}

#[test]
fn limits_are_kept() {
    let mut zones = zones(&[("zone_max_open", 2), ("zone_max_active", 3)], false);
    for zone in 1..4 {
        assert_eq!(write(&mut zones, zone * 2048, 8), Ok(()));
    }
    assert_eq!(conditions(&zones), [Closed, Implicit, Implicit, Empty]);
    assert_eq!(write(&mut zones, 8192, 8), Err("EOVERFLOW"));
    // Nothing is closed while no more zones may be active.
    assert_eq!(
        zones.change(Change::Open, 2048, 2048).0,
        Err("ETOOMANYREFS")
    );
    assert_eq!(zones.change(Change::Finish, 8192, 2048).0, Err("EOVERFLOW"));
    assert_eq!(zones.change(Change::Close, 8192, 2048).0, Err("EIO"));
    assert_eq!(zones.change(Change::Finish, 6144, 2048).0, Ok(()));
    assert_eq!(zones.change(Change::Open, 2048, 2048).0, Ok(()));
    assert_eq!(zones.change(Change::Open, 8192, 2048).0, Ok(()));
    assert_eq!(conditions(&zones), [Explicit, Closed, Full, Explicit]);
    // Three are active, and none may be closed.
    assert_eq!(
        zones.change(Change::Finish, 4096, 2048).0,
        Err("ETOOMANYREFS")
    );
}

#[test]
fn changes_are_of_whole_zones() {
    let mut zones = zones(&[], false);
    for (sector, count) in [(0, 0), (1, 2048), (2048, 1), (2048, 1 << 40), (14336, 4096)] {
        assert_eq!(zones.change(Change::Reset, sector, count).0, Err("EINVAL"));
    }
    assert_eq!(zones.change(Change::Open, 0, 4096).0, Err("EIO"));
    assert_eq!(conditions(&zones)[0], Explicit);
    write(&mut zones, 4096, 8).unwrap();
    assert_eq!(
        zones.change(Change::Reset, 2048, 2048),
        (Ok(()), vec![(2048, 2048)])
    );
    // A zone without data is left alone.
    assert_eq!(
        zones.change(Change::Reset, 0, 16384),
        (Ok(()), vec![(4096, 2048)])
    );
}

#[test]
fn zones_fail_and_are_repaired() {
    let mut zones = zones(&[], false);
    write(&mut zones, 2048, 8).unwrap();
    assert_eq!(zones.toggle(0, ReadOnly), Err("EINVAL"));
    assert_eq!(zones.toggle(16384, ReadOnly), Err("EINVAL"));
    assert_eq!(zones.toggle(2049, ReadOnly), Ok((None, None)));
    assert!(zones.is_written(4095));
    assert_eq!(zones.change(Change::Reset, 2048, 2048).0, Err("EIO"));
    assert_eq!(zones.toggle(2048, Offline), Ok((None, None)));
    assert_eq!(zones.toggle(2048, Offline), Ok((Some((2048, 2048)), None)));
    assert_eq!(conditions(&zones)[0], Empty);
    // The block layer remembers the write pointer from before.
    assert_eq!(write(&mut zones, 2048, 8), Err("EIO"));
}

#[test]
fn null_blk_finishes_zones_that_fail() {
    let limits = [("zone_max_open", 1), ("zone_max_active", 2)];
    let mut both = [true, false].map(|is_null_blk| zones(&limits, is_null_blk));
    let defects = both.each_mut().map(|zones| {
        write(zones, 2048, 8).unwrap();
        let one = zones.toggle(4096, Offline).unwrap().1;
        zones.change(Change::Open, 4096 + 2048, 2048).0.unwrap();
        (one, zones.toggle(2048, Offline).unwrap().1)
    });
    assert_eq!(defects, [(Some(15), Some(14)), (None, None)]);
    assert!(!both[0].is_like(&both[1]));
    assert_eq!(both.each_ref().map(Zones::may_activate), [false, true]);
    assert_eq!(
        both.map(|zones| zones.leave()),
        [Phantoms([0, 1, 1]), Phantoms::default()]
    );
}

#[test]
fn null_blk_counts_zones_from_before() {
    let mut zones = zones(&[("zone_max_open", 1), ("zone_max_active", 3)], true);
    zones.phantoms = Phantoms([1, 0, 0]);
    // One too many is open, because there is none to close.
    assert_eq!(write(&mut zones, 2048, 8), Ok(()));
    assert_eq!(write(&mut zones, 4096, 8), Ok(()));
    assert_eq!(conditions(&zones), [Closed, Implicit, Empty, Empty]);
    assert_eq!(write(&mut zones, 6144, 8), Err("EOVERFLOW"));
    assert_eq!(zones.leave(), Phantoms([2, 0, 1]));
}
