// SPDX-License-Identifier: GPL-2.0

//! What is done to a device because of its zones.

use super::{
    expect, settings, Answer, Device,
    Judgement::{self, Defect, Right},
    EMPTY, SECTOR,
};
use crate::{
    command::unescape,
    model::zones::{Change, Condition, Zones},
};

/// The byte that is read behind a write pointer.
pub const UNWRITTEN: u8 = 0xff;

impl Device {
    /// The zones, while the disk is on and has some.
    pub fn zones(&self) -> Option<&Zones> {
        self.zones.as_ref()
    }

    /// Judges the answer to a command about zones; [`None`] for other commands.
    pub fn zone_words(&mut self, words: &[&str], answer: &Answer) -> Option<Judgement> {
        let sectors = |text: &str| text.parse::<u64>().unwrap_or(0);
        let change = match *words {
            ["set", path, text] => {
                let condition = match path.split_once('/')?.1 {
                    "zone_readonly" => Condition::ReadOnly,
                    "zone_offline" => Condition::Offline,
                    _ => return None,
                };
                return Some(self.toggle(&unescape(text), condition, answer));
            }
            ["report-zones", _, offset, count] => {
                let (first, count) = (sectors(offset) / SECTOR, sectors(count));
                let right = match self.zones.as_mut() {
                    _ if !self.on => "ENOENT".into(),
                    None => "ENOTTY".into(),
                    Some(_) if count == 0 => "EINVAL".into(),
                    Some(zones) => zones.report(first, count),
                };
                return Some(expect(&right, answer));
            }
            ["open-zones", ..] => Change::Open,
            ["close-zones", ..] => Change::Close,
            ["finish-zones", ..] => Change::Finish,
            ["reset-zones", ..] => Change::Reset,
            _ => return None,
        };
        let [.., offset, len] = *words else {
            return None;
        };
        let Some(zones) = self.zones.as_mut() else {
            return Some(expect(if self.on { "ENOTTY" } else { "ENOENT" }, answer));
        };
        let result = zones.change(change, sectors(offset) / SECTOR, sectors(len) / SECTOR);
        result.1.into_iter().for_each(|range| self.discard(range));
        Some(expect(result.0.err().unwrap_or("ok"), answer))
    }

    fn toggle(&mut self, text: &str, to: Condition, answer: &Answer) -> Judgement {
        let toggled = match self.zones.as_mut() {
            _ if text.is_empty() => Err("EFAULT"),
            None => Err("EINVAL"),
            Some(zones) => settings::number(text).and_then(|sector| zones.toggle(sector, to)),
        };
        let text = toggled.err().unwrap_or("ok");
        let (discarded, defect) = toggled.unwrap_or_default();
        discarded.into_iter().for_each(|range| self.discard(range));
        match (expect(&format!("{text} EACCES"), answer), defect) {
            (Right, Some(defect)) => Defect(defect),
            (judgement, _) => judgement,
        }
    }

    fn discard(&mut self, (first, count): (u64, u64)) {
        if !self.settings.is("memory_backed") {
            return;
        }
        let sectors = first..first + count;
        sectors.for_each(|sector| self.media.write(sector, EMPTY, false));
        if self.settings.block() > 4096 {
            self.blame(3);
        }
    }

    /// How many bytes of a transfer at an offset are in the zone there.
    pub(super) fn left_in_zone(&self, offset: u64) -> u64 {
        self.zones.as_ref().map_or(u64::MAX, |zones| {
            let zone = zones.find(offset / SECTOR);
            (zone.first + zone.len) * SECTOR - offset
        })
    }

    /// Does a request of sectors in one zone, which must not wait if `nowait`; returns how many are
    /// transferred, and whether it succeeds.
    pub(super) fn request_in_zone(
        &mut self,
        first: u64,
        count: u64,
        write: bool,
        nowait: bool,
    ) -> (Result<(), &'static str>, u64) {
        // One after the other to a rotational disk, in a thread of the block layer.
        let delayed = nowait || self.settings.is("rotational");
        let reached = match self.zones.as_mut() {
            Some(zones) if write => zones.begin_write(first, count, delayed),
            Some(zones) if zones.find(first).condition == Condition::Offline => Err("EIO"),
            _ => Ok(()),
        };
        if reached.is_err() {
            return (reached, 0);
        }
        let (succeeds, done) = self.request(first, count);
        if let Some(zones) = self.zones.as_mut().filter(|_| write) {
            zones.end_write(first, done, succeeds);
        }
        (if succeeds { Ok(()) } else { Err("EIO") }, done)
    }

    /// Whether the block layer remembers the zone at an offset.
    pub(super) fn is_remembered(&self, offset: u64) -> bool {
        self.zones
            .as_ref()
            .is_some_and(|zones| zones.find(offset / SECTOR).is_remembered())
    }

    /// Whether the requests of a transfer wait for each other.
    pub(super) fn is_sequential(&self, offset: u64) -> bool {
        self.zones
            .as_ref()
            .is_some_and(|zones| zones.find(offset / SECTOR).condition != Condition::Conventional)
    }
}
