// SPDX-License-Identifier: GPL-2.0

//! Operations on zoned disks.
//!
//! Writes do not reach the next zone: the block layer would submit their parts together. Where a
//! limit can make one zone matter for another, only one of those that are changed or written
//! together may need a place. Appends are left out, because user space cannot submit any to a
//! disk.

use super::{
    script::{Script, AREA},
    InZone, Io, Part, Place,
};
use crate::{
    command::{Cuts, Engine, Transfer},
    model::zones::{Condition, Zone, Zones},
};
use proptest::{prelude::*, sample::Index};
use proptest_derive::Arbitrary;

/// Bytes in a sector.
const SECTOR: u64 = 512;

/// The longest write in bytes, which the kernel hands to the block layer as one.
const ONE_WRITE: u64 = 1 << 20;

/// Bytes of a zone that are read last, of which most operations reach only the first.
const SOME: u64 = 128 << 10;
const MORE: u64 = 384 << 10;

/// What is done to one of the zones.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum ZoneOperation {
    #[proptest(weight = 8)]
    Open,
    #[proptest(weight = 4)]
    Close,
    #[proptest(weight = 3)]
    Finish,
    #[proptest(weight = 4)]
    Reset,
    /// To the last zone.
    Several(#[proptest(strategy = "verb()")] &'static str),
    ResetAll,
    /// Where no zone begins or ends.
    Misfit(#[proptest(strategy = "verb()")] &'static str),
    #[proptest(weight = 3)]
    Fail {
        offline: bool,
    },
    /// The first zone that failed is made empty.
    #[proptest(weight = 2)]
    Repair,
    #[proptest(weight = 4)]
    Report,
}

fn verb() -> impl Strategy<Value = &'static str> {
    let verbs = ["open-zones", "close-zones", "finish-zones", "reset-zones"];
    (0..verbs.len()).prop_map(move |verb| verbs[verb])
}

impl Script<'_> {
    /// The zones of the current device, if it is on and has some.
    pub(super) fn zones(&self) -> Option<&Zones> {
        self.model.zones(self.name())
    }

    fn zone(&self, at: Index) -> Option<Zone> {
        let all = self.zones()?.all();
        Some(all[at.index(all.len())].clone())
    }

    /// The length of all zones in sectors.
    fn sectors(&self) -> u64 {
        let last = self.zones().and_then(|zones| zones.all().last());
        last.map_or(0, |zone| zone.first + zone.len)
    }

    /// The first sector that has to be written sequentially.
    pub(super) fn first_sequential(&self) -> u64 {
        let is_conventional = |zone: &&Zone| zone.condition == Condition::Conventional;
        let conventional = self.zones().into_iter().flat_map(Zones::all);
        let last = conventional.take_while(is_conventional).last();
        last.map_or(0, |zone| zone.first + zone.len)
    }

    /// How many bytes a request may have.
    pub(super) fn left_in_zone(&self, io: Io, offset: u64) -> u64 {
        match (self.zones(), io) {
            (Some(zones), Io::Write(_) | Io::Zero) if offset / SECTOR < self.sectors() => {
                let zone = zones.find(offset / SECTOR);
                (zone.first + zone.len) * SECTOR - offset
            }
            _ => u64::MAX,
        }
    }

    /// Reports all zones of the current device.
    pub(super) fn report(&mut self) {
        self.words(&["report-zones", self.name(), "0", "64"]);
    }

    /// Tells the block layer where the write pointer is if it may have lost that. It is not
    /// certain at once what it remembers of a zone that is full.
    pub(super) fn after_write(&mut self, succeeds: bool, offset: u64, place: InZone) {
        let sector = offset / SECTOR;
        let zones = self
            .zones()
            .filter(|_| !succeeds && sector < self.sectors());
        let Some(zone) = zones.map(|zones| zones.find(sector)) else {
            return;
        };
        use Condition::*;
        let is_certain = matches!(zone.condition, Empty | Implicit | Explicit | Closed);
        if !(place == InZone::Blind && is_certain && zone.is_lost()) {
            self.report();
        }
    }

    /// Offset and length of blocks to write.
    fn place_in_zone(&self, zone: &Zone, place: Place) -> (u64, u64) {
        let block = self.block();
        let bytes = |sectors: u64| sectors * SECTOR;
        let len = place.blocks * block;
        let left = match zone.condition {
            Condition::Conventional => 0,
            _ => bytes(zone.len.saturating_sub(zone.written)),
        };
        let room = bytes(zone.capacity.saturating_sub(zone.written));
        let (at, len) = match place.in_zone {
            _ if left == 0 => (None, len),
            InZone::Elsewhere => (None, len),
            InZone::AtPointer | InZone::Blind => (Some(zone.written), len),
            InZone::ToCapacity => (Some(zone.written), room.max(block)),
            InZone::BeyondCapacity => (Some(zone.written), room + block),
        };
        let at = at.map_or_else(
            || place.at.index((bytes(zone.len) / block) as usize) as u64 * block,
            bytes,
        );
        let len = len.min(ONE_WRITE).min(bytes(zone.len) - at);
        (bytes(zone.first) + at, len)
    }

    /// Offset and length of blocks to read: often about the write pointer.
    fn read_in_zones(&self, zone: &Zone, place: Place) -> (u64, u64) {
        let (block, end) = (self.block(), self.sectors() * SECTOR);
        let len = (place.blocks * block).min(AREA / 4).min(end);
        let offset = match place.in_zone {
            InZone::AtPointer | InZone::Blind => {
                let pointer = (zone.first + zone.written) * SECTOR;
                pointer.saturating_sub(len / block / 2 * block)
            }
            _ => place.at.index((end / block) as usize) as u64 * block,
        };
        (offset.min(end - len), len)
    }

    /// A request to a zoned disk.
    pub(super) fn zoned_io(&mut self, io: Io, place: Place, cuts: Cuts) {
        let Some(zone) = self.zone(place.at) else {
            return;
        };
        let (offset, len) = match io {
            Io::Write(_) | Io::Zero => self.place_in_zone(&zone, place),
            Io::Read | Io::Discard | Io::Flush => self.read_in_zones(&zone, place),
        };
        // Of so many bytes in more pieces the kernel makes several writes.
        let cuts = if len < ONE_WRITE / 2 {
            cuts
        } else {
            Cuts::new()
        };
        let succeeds = self.io(io, offset, len, cuts);
        if matches!(io, Io::Write(_) | Io::Zero) {
            self.after_write(succeeds, offset, place.in_zone);
        }
    }

    /// How a batch is submitted: rarely polled if there are zones, because null_blk is not compared
    /// from then on (defect 7).
    pub(super) fn engine(&mut self, engine: Engine, first: &Part) -> Engine {
        let zoned = |name: &&str| self.model.zones(name).is_some();
        match engine {
            Engine::Polled if first.place.blocks % 4 > 0 && ["a", "b"].iter().any(zoned) => {
                Engine::IoUring
            }
            engine => engine,
        }
    }

    /// A transfer in a zone that no other of the batch is in.
    pub(super) fn part_in_zone(
        &mut self,
        slot: usize,
        longest: u64,
        part: Part,
        others: &[Transfer],
        polled: bool,
    ) -> Option<Transfer> {
        let zones = self.zones()?;
        let zone = zones.all()[slot % zones.all().len()].clone();
        let limited = zones.has_limits();
        let name = self.name();
        let is_here = |other: &&Transfer| other.disk == name;
        let mut here = others.iter().filter(is_here);
        let range = zone.first * SECTOR..(zone.first + zone.len) * SECTOR;
        let taken = here.clone().any(|other| range.contains(&other.offset));
        let may_clear = self.once && zone.first == self.first_sequential();
        if taken || may_clear {
            return None;
        }
        let may_interfere = limited && here.any(|other| other.data.is_some());
        // A zoned write is not polled for: the block layer submits it later.
        let data = part.data.filter(|_| !may_interfere && !polled);
        let (offset, len) = self.place_in_zone(&zone, part.place);
        let len = len.min(longest / self.block() * self.block());
        Some(self.transfer(offset, len, data, self.cuts(part.cuts)))
    }

    /// Changes zones, or looks at them.
    pub(super) fn zone_operation(&mut self, operation: ZoneOperation, at: Index) {
        let Some(zone) = self.zone(at) else {
            if let ZoneOperation::Report = operation {
                self.report();
            }
            return;
        };
        let limited = self.zones().is_some_and(Zones::has_limits);
        let end = self.sectors();
        let (verb, first, len) = match operation {
            ZoneOperation::Open => ("open-zones", zone.first, zone.len),
            ZoneOperation::Close => ("close-zones", zone.first, zone.len),
            ZoneOperation::Finish => ("finish-zones", zone.first, zone.len),
            ZoneOperation::Reset => ("reset-zones", zone.first, zone.len),
            ZoneOperation::Several("open-zones" | "finish-zones") if limited => return,
            ZoneOperation::Several(verb) => (verb, zone.first, end - zone.first),
            ZoneOperation::ResetAll => ("reset-zones", 0, end),
            ZoneOperation::Misfit(verb) => match at.index(4) {
                0 => (verb, zone.first + 8, zone.len),
                1 => (verb, zone.first, zone.len - 8),
                2 => (verb, zone.first, end + 8),
                _ => (verb, zone.first, 0),
            },
            ZoneOperation::Fail { offline } => return self.toggle(at, offline),
            ZoneOperation::Repair => return self.repair(),
            ZoneOperation::Report => {
                let (first, count) = (zone.first + 7, 1 + at.index(9));
                ("report-zones", first, count as u64)
            }
        };
        let len = if verb == "report-zones" {
            len
        } else {
            len * SECTOR
        };
        let first = (first * SECTOR).to_string();
        self.words(&[verb, self.name(), &first, &len.to_string()]);
    }

    /// Makes a zone read-only or offline; also one that is conventional, or not there.
    fn toggle(&mut self, at: Index, offline: bool) {
        let sector = at.index(self.sectors() as usize + 4096);
        let name = if offline {
            "zone_offline"
        } else {
            "zone_readonly"
        };
        self.set(name, &sector.to_string());
    }

    fn repair(&mut self) {
        let all = self.zones().into_iter().flat_map(Zones::all);
        let failed = |zone: &Zone| match zone.condition {
            Condition::ReadOnly => Some(("zone_readonly", zone.first)),
            Condition::Offline => Some(("zone_offline", zone.first)),
            _ => None,
        };
        let first = all.filter_map(|zone| failed(zone)).next();
        if let Some((name, sector)) = first {
            self.set(name, &sector.to_string());
        }
    }

    /// Shows all zones with their data, then what a power cycle leaves of it: a zone that is
    /// read-only shows what is behind its write pointer.
    pub(super) fn finish_zones(&mut self) {
        let all = |script: &Self| {
            script
                .zones()
                .map_or(Vec::new(), |zones| zones.all().to_vec())
        };
        self.report();
        for zone in all(self) {
            // About the write pointer.
            self.read(
                &zone,
                (zone.written * SECTOR).saturating_sub(SOME / 2),
                SOME,
            );
        }
        self.set("power", "0");
        self.set("power", "1");
        for zone in all(self) {
            self.set("zone_readonly", &zone.first.to_string());
        }
        self.report();
        for zone in all(self) {
            self.read(&zone, 0, MORE);
            self.read(&zone, zone.len * SECTOR, SOME);
        }
    }

    /// Reads so many bytes of a zone, at an offset in it if there are as many there.
    fn read(&mut self, zone: &Zone, offset: u64, len: u64) {
        let offset = offset.min(zone.len * SECTOR - len) / self.block() * self.block();
        self.io(Io::Read, zone.first * SECTOR + offset, len, Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{commands, System};
    use super::*;
    use crate::{
        command::{Answer, Command},
        model::{Judgement, Model},
    };
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    use std::collections::{BTreeMap, BTreeSet};

    /// What becomes of the zones of a device, and of the commands about them.
    fn outcomes(commands: &[Command], system: System) -> BTreeSet<String> {
        let mut model = Model::new(system, false);
        let mut seen = BTreeSet::new();
        for command in commands {
            let answer = Answer {
                text: "ok".into(),
                bytes: Vec::new(),
            };
            let all = vec![answer; command.transfers().len().max(1)];
            let judgement = model.judge(command, &all);
            let is_other = command.transfers().iter().any(|part| part.disk != "a");
            let Some(zones) = model.zones("a").filter(|_| !is_other) else {
                continue;
            };
            seen.extend(
                zones
                    .all()
                    .iter()
                    .map(|zone| format!("{:?}", zone.condition)),
            );
            seen.extend(zones.all().iter().any(Zone::is_lost).then(|| "lost".into()));
            if let (Command::Transfer(write), true) = (command, judgement == Judgement::Right) {
                let zone = zones.find(write.offset / SECTOR);
                let in_zone = write.data.is_some() && zone.condition != Condition::Conventional;
                seen.extend(in_zone.then(|| "written".into()));
            }
            if let Judgement::Wrong(right) = judgement {
                seen.insert(right);
            }
        }
        seen
    }

    #[test]
    fn all_happens_to_zones() {
        let system = System {
            cpus: 4,
            poll_queues: 1,
        };
        let names = "badblocks badblocks_partial_io blocksize memory_backed size zone_capacity \
            zone_full zone_max_active zone_max_open zone_nr_conv zone_offline zone_readonly \
            zone_size zoned";
        let names = names.split_whitespace().map(String::from).collect();
        let strategy = commands(names, false, system);
        let mut runner = TestRunner::deterministic();
        let mut counts = BTreeMap::new();
        for _ in 0..400 {
            let script = strategy.new_tree(&mut runner).unwrap().current();
            for outcome in outcomes(&script, system) {
                *counts.entry(outcome).or_insert(0) += 1;
            }
        }
        for (outcome, least) in [
            ("written", 80),
            ("lost", 20),
            ("Conventional", 20),
            ("Empty", 80),
            ("Implicit", 80),
            ("Explicit", 40),
            ("Closed", 30),
            ("Full", 40),
            ("ReadOnly", 40),
            ("Offline", 20),
            ("'EIO'", 40),
            ("'EINVAL'", 20),
            ("'EOVERFLOW'", 10),
            ("'ETOOMANYREFS'", 10),
        ] {
            let count = counts.get(outcome).copied().unwrap_or(0);
            assert!(count >= least, "{outcome}: {count} of 400 scripts");
        }
    }
}
