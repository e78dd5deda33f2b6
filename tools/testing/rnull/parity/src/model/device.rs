// SPDX-License-Identifier: GPL-2.0

//! One device, on or off, with its settings, its data, its bad sectors.

mod zoned;

use super::{
    badblocks::BadBlocks,
    expect,
    faults::Faults,
    media::{Media, EMPTY, SECTOR},
    settings::{self, Kind, Settings},
    zones::{Phantoms, Zones},
    Answer, Judgement, System,
};
use crate::{
    command::{unescape, Cuts, Data, Engine, Transfer},
    pattern::UNTOUCHED,
};
use zoned::UNWRITTEN;
use Judgement::{Defect, Right, SameAsOther, Wrong};

/// Sectors whose data is modelled; tests stay within them.
const SECTORS: u64 = 16384;

/// What a cache keeps free for what comes next, with some more to be sure.
const ROOM: u64 = 256 << 10;

/// One device.
#[derive(Clone, Debug)]
pub struct Device {
    settings: Settings,
    system: System,
    on: bool,
    /// Whether it was on with a cache.
    ever_cached: bool,
    /// Whether there were poll queues at power-on.
    polls: bool,
    /// Whether there are poll queues in the shared tag set.
    shared_polls: bool,
    /// The zones, while it is on.
    zones: Option<Zones>,
    phantoms: Phantoms,
    media: Media,
    bad: BadBlocks,
    faults: Faults,
    /// The defect because of which null_blk's data may be wrong from now on.
    defect: Option<u32>,
    is_null_blk: bool,
    /// The block size with which data was last written.
    written_block: Option<u64>,
}

/// What becomes of a transfer.
#[derive(Default)]
struct Outcome {
    text: String,
    /// The ranges of bytes that are transferred.
    done: Vec<(u64, u64)>,
    /// The length, as far as the disk goes.
    len: u64,
}

impl Device {
    /// A device that was just made.
    pub fn new(settings: Settings, system: System, is_null_blk: bool) -> Self {
        Self {
            shared_polls: settings.is("poll_queues"),
            settings,
            system,
            on: false,
            ever_cached: false,
            polls: false,
            zones: None,
            phantoms: Phantoms::default(),
            media: Media::new(SECTORS),
            bad: BadBlocks::new(SECTORS),
            faults: Faults::default(),
            defect: None,
            is_null_blk,
            written_block: None,
        }
    }

    /// Judges the answer to a command of words; to unknown ones all answers are right.
    pub fn words(&mut self, words: &[&str], answer: &Answer) -> Judgement {
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        if let Some(judgement) = self.zone_words(words, answer) {
            return judgement;
        }
        match *words {
            ["mkdir", _] => expect("EEXIST", answer),
            ["set", path, text] => {
                let attribute = path.split_once('/').map_or("", |(_, file)| file);
                let text = unescape(text);
                match attribute {
                    "power" => self.power(&text, answer),
                    "badblocks" => self.badblocks(&text, answer),
                    _ if self.faults.set(attribute, &text) => expect(&format!("ok {text}"), answer),
                    _ => self.set(attribute, &text, answer),
                }
            }
            ["disk", _] if self.on => SameAsOther,
            ["disk", _] => expect("no disk", answer),
            ["attributes", _] => self.attributes(answer),
            [operation @ ("discard" | "zero"), _, offset, len] => {
                let right = self.erase(operation == "zero", number(offset), number(len));
                expect(&right, answer)
            }
            ["flush", _] => expect(self.flush(), answer),
            _ => Right,
        }
    }

    /// Whether all but the data should look the same.
    pub fn is_like(&self, other: &Self) -> bool {
        let zones = match (&self.zones, &other.zones) {
            (Some(a), Some(b)) => a.is_like(b),
            (a, b) => a.is_some() == b.is_some(),
        };
        let state = |device: &Self| (device.on, device.polls);
        zones && state(self) == state(other) && self.settings == other.settings
    }

    /// Whether null_blk would write beyond its pages: it has a cache, or had one before, over
    /// blocks larger than a page (defect 4).
    pub fn overruns(&self) -> bool {
        self.on && self.ever_cached && self.settings.block() > 4096
    }

    fn set(&mut self, name: &str, text: &str, answer: &Answer) -> Judgement {
        let Some(kind) = Settings::kind(name) else {
            return Right;
        };
        let verdict = settings::parse(kind, text).and_then(|value| match name {
            _ if !self.on => Ok(value),
            "submit_queues" | "poll_queues" => self.check_queues(name, value).map(|()| value),
            _ => Err("EBUSY"),
        });
        if let Ok(value) = verdict {
            self.settings.set(name, value);
        }
        let text = verdict.err().unwrap_or("ok");
        expect(&format!("{text} {}", self.settings.get(name)), answer)
    }

    /// Whether a disk that is on may have so many queues.
    fn check_queues(&self, name: &str, count: u64) -> Result<(), &'static str> {
        let (least, most, other) = match name {
            "submit_queues" => (1, self.system.cpus, "poll_queues"),
            _ => (0, self.system.poll_queues, "submit_queues"),
        };
        let all = count + self.settings.get(other);
        if self.settings.is("shared_tags") || !(least..=most).contains(&count) {
            Err("EINVAL")
        } else if self.is_null_blk && !self.polls && all > self.system.cpus {
            // Without a map for them null_blk's poll queues count as others.
            Err("ENOMEM")
        } else {
            Ok(())
        }
    }

    fn can_poll(&self) -> bool {
        match self.settings.is("shared_tags") {
            true => self.shared_polls,
            false => self.polls && self.settings.is("poll_queues"),
        }
    }

    fn power(&mut self, text: &str, answer: &Answer) -> Judgement {
        let had_cache = self.settings.is("cache_size");
        let verdict = settings::parse(Kind::Bool, text).and_then(|wanted| match wanted {
            1 if !self.on => self.power_on(),
            1 => Ok(()),
            _ => {
                if self.on {
                    self.media.lose_power();
                    // null_blk goes on with its cache if the next power-on is without one.
                    if had_cache {
                        self.blame(1);
                    }
                }
                self.on = false;
                if let Some(zones) = self.zones.take() {
                    self.phantoms = zones.leave();
                }
                Ok(())
            }
        });
        let text = verdict.err().unwrap_or("ok");
        let miscounts = |zones: &Zones| zones.has_limits() && self.phantoms.exist();
        match expect(&format!("{text} {}", u8::from(self.on)), answer) {
            Right if self.zones.as_ref().is_some_and(miscounts) => Defect(16),
            judgement => judgement,
        }
    }

    fn power_on(&mut self) -> Result<(), &'static str> {
        let before = self.settings.clone();
        let result = match self.settings.sanitize(&self.system) {
            Ok(()) if self.faults.should_fail_init_hctx() => Err("ENOMEM"),
            result => result,
        };
        match result {
            Ok(()) => {
                self.on = true;
                self.ever_cached |= self.settings.is("cache_size");
                self.polls = self.settings.is("poll_queues");
                let zoned = self.settings.is("zoned");
                let zones = || Zones::new(&self.settings, self.is_null_blk, self.phantoms);
                self.zones = zoned.then(zones);
            }
            // null_blk has changed the attributes by then.
            Err(_) if self.is_null_blk => {}
            Err(_) => self.settings = before,
        }
        result
    }

    /// The data may be wrong from now on, if the device has that defect.
    fn blame(&mut self, defect: u32) {
        if self.is_null_blk {
            self.defect.get_or_insert(defect);
        }
    }

    fn attributes(&self, answer: &Answer) -> Judgement {
        for word in answer.text.split(' ') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let right = match name {
                "power" => u64::from(self.on),
                _ if Settings::kind(name).is_some() => self.settings.get(name),
                _ => continue,
            };
            if value != right.to_string() {
                return Wrong(format!("{name}={right}"));
            }
        }
        Right
    }

    /// Marks sectors as bad, or as good again.
    fn badblocks(&mut self, text: &str, answer: &Answer) -> Judgement {
        let range = || {
            let text = text.trim();
            let bad = match text.as_bytes().first()? {
                b'+' => true,
                b'-' => false,
                _ => return None,
            };
            let (first, last) = text[1..].split_once('-')?;
            Some((bad, settings::number(first), settings::number(last)))
        };
        let verdict = match range() {
            _ if text.is_empty() => "EFAULT",
            None => "EINVAL",
            Some((_, Err(why), _) | (_, _, Err(why))) => why,
            Some((_, Ok(first), Ok(last))) if first > last => "EINVAL",
            Some((bad, Ok(first), Ok(last))) => {
                self.bad.set(first, last, bad);
                "ok"
            }
        };
        match answer.text.split_once(' ').unwrap_or((&answer.text, "")) {
            (text, list) if text == verdict && self.bad.are(list) => Right,
            _ => Wrong(format!("{verdict}, bad sectors {:?}", self.bad.list())),
        }
    }

    fn flush(&mut self) -> &'static str {
        if !self.on {
            return "ENOENT";
        }
        // Without a cache there is no request.
        if self.settings.is("cache_size") && self.faults.should_timeout() {
            return "ETIMEDOUT";
        }
        self.media.flush();
        "ok"
    }

    /// How many sectors a request of whole blocks transfers, and whether it succeeds.
    fn request(&mut self, first: u64, count: u64) -> (bool, u64) {
        let Some(start) = self.bad.first(first, count) else {
            return (true, count);
        };
        if self.settings.is("badblocks_once") {
            self.bad.clear_range(start);
        }
        if !self.settings.is("badblocks_partial_io") {
            return (false, 0);
        }
        let block = self.settings.block() / SECTOR;
        (false, (start / block * block).saturating_sub(first))
    }

    /// Splits a transfer into requests.
    fn outcome(&mut self, offset: u64, len: u64, write: bool, engine: Option<Engine>) -> Outcome {
        let polled = matches!(engine, Some(Engine::Polled | Engine::Late));
        // At first io_uring submits what must not wait.
        let nowait = engine.is_some_and(|engine| engine != Engine::Threads);
        let end = self.settings.get("size") << 20;
        let left = len.min(end.saturating_sub(offset));
        let error = match self.on {
            false => "ENOENT",
            true if offset >= end && len > 0 && write => "ENOSPC",
            true if offset >= end && len > 0 => "0 bytes",
            true if (offset | left) % self.settings.block() != 0 => "EINVAL",
            true if polled && !self.can_poll() => "EOPNOTSUPP",
            true => "",
        };
        if !error.is_empty() {
            return Outcome {
                text: error.into(),
                ..Outcome::default()
            };
        }
        let (mut at, mut error, mut timeout, mut done) = (offset, None, false, Vec::new());
        let is_sequential = write && left > 0 && self.is_sequential(offset);
        while at < offset + left {
            // A request of a transfer that is full as far as the block layer knows fails with it.
            if is_sequential && at > offset && !self.is_remembered(at) {
                error = Some("EIO");
                break;
            }
            let bytes = self.settings.request().min(offset + left - at);
            let bytes = bytes.min(self.left_in_zone(at));
            if self.faults.should_timeout() {
                timeout = true;
            } else {
                let (first, count) = (at / SECTOR, bytes / SECTOR);
                let (result, sectors) = self.request_in_zone(first, count, write, nowait);
                done.push((at, at + sectors * SECTOR));
                // The last request in a zone has the last word; those before it may be refused.
                error = match is_sequential {
                    true => result.err().or(error),
                    false => error.or(result.err()),
                };
            }
            at += bytes;
        }
        let text = match error {
            _ if timeout => "ETIMEDOUT".into(),
            Some(error) => error.into(),
            None if left < len => format!("{left} bytes"),
            None => "ok".into(),
        };
        Outcome {
            text,
            done,
            len: left,
        }
    }

    /// The block layer flushes the cache at some time during a batch.
    pub fn may_flush(&mut self) {
        self.media.may_write_back();
    }

    /// Judges a write or a read.
    pub fn transfer(
        &mut self,
        transfer: &Transfer,
        engine: Option<Engine>,
        answer: &Answer,
    ) -> Judgement {
        let (offset, len) = (transfer.offset, transfer.len as u64);
        let block = self.settings.block();
        if transfer.data.is_some() && self.cuts_blocks(&transfer.cuts) {
            self.blame(12);
        }
        if transfer.data.is_none() && self.written_block.is_some_and(|other| other != block) {
            self.blame(13);
        }
        let outcome = self.outcome(offset, len, transfer.data.is_some(), engine);
        if let Some(data) = transfer.data {
            self.store(&outcome, data, engine.is_none());
        }
        match expect(&outcome.text, answer) {
            Right if transfer.data.is_none() => self.read(transfer, &outcome, answer),
            judgement => judgement,
        }
    }

    fn store(&mut self, outcome: &Outcome, Data { seed, fua }: Data, alone: bool) {
        if !self.settings.is("memory_backed") {
            return;
        }
        let block = self.settings.block();
        if outcome.len > 0
            && self
                .written_block
                .replace(block)
                .is_some_and(|old| old != block)
        {
            self.blame(13);
        }
        let fails = outcome.text.starts_with('E');
        // The cache is not flushed after a failure.
        let through = fua && (self.settings.is("fua") || !fails);
        let cached = self.settings.is("cache_size") && !through;
        let size = self.settings.get("cache_size") << 20;
        // rnull writes some pages back before the cache is full, perhaps some that change then.
        // null_blk writes past it where a page is stored already.
        if cached && (self.is_null_blk || self.media.cached_with(&outcome.done) + ROOM > size) {
            self.media.may_write_back();
        }
        for (from, to) in &outcome.done {
            let sectors = from / SECTOR..to / SECTOR;
            sectors.for_each(|sector| self.media.write(sector, seed, cached));
        }
        // Without FUA the block layer flushes the cache, with what else is in it by then.
        if fua && !self.settings.is("fua") {
            self.media.may_write_back();
        }
        // After a synchronous write that is to be durable the kernel flushes the cache, too.
        if fua && alone && !fails {
            self.media.flush();
        }
    }

    /// Discards sectors, or writes zeros; returns the right answer.
    fn erase(&mut self, zero: bool, offset: u64, len: u64) -> String {
        let end = self.settings.get("size") << 20;
        let block = self.settings.block();
        let misfit = offset % block != 0 || len % block != 0 || len == 0 || offset + len > end;
        let error = match self.on {
            false => "ENOENT",
            true if !zero && !self.settings.is("discard") => "EOPNOTSUPP",
            true if misfit => "EINVAL",
            true if zero => {
                let outcome = self.outcome(offset, len, true, None);
                let data = Data {
                    seed: EMPTY,
                    fua: false,
                };
                self.store(&outcome, data, true);
                return outcome.text;
            }
            true if self.faults.should_timeout() => "ETIMEDOUT",
            true => "",
        };
        if !error.is_empty() {
            return error.into();
        }
        let first = offset / SECTOR;
        let (succeeds, sectors) = self.request(first, len / SECTOR);
        (first..first + sectors).for_each(|sector| self.media.write(sector, EMPTY, false));
        if block > 4096 {
            self.blame(3);
        }
        if succeeds { "ok" } else { "EIO" }.into()
    }

    /// Judges each byte that was read.
    fn read(&mut self, transfer: &Transfer, outcome: &Outcome, answer: &Answer) -> Judgement {
        let backed = self.settings.is("memory_backed");
        let sectors = (transfer.offset..).step_by(SECTOR as usize);
        for (at, bytes) in sectors.zip(answer.bytes.chunks(SECTOR as usize)) {
            let mut done = outcome.done.iter();
            let written = |zones: &Zones| zones.is_written(at / SECTOR);
            let right = if backed && done.any(|(from, to)| (*from..*to).contains(&at)) {
                match self.zones.as_ref().is_none_or(written) {
                    true => self.media.read(at / SECTOR, bytes),
                    false if bytes.iter().all(|byte| *byte == UNWRITTEN) => Ok(()),
                    false => Err(vec![UNWRITTEN.into()]),
                }
            } else if bytes.iter().all(|byte| *byte == UNTOUCHED) {
                Ok(())
            } else {
                Err(Vec::new())
            };
            let Err(possible) = right else { continue };
            return match self.defect {
                Some(defect) => Defect(defect),
                None if self.is_null_blk && self.cuts_blocks(&transfer.cuts) => Defect(12),
                None if possible.is_empty() => Wrong(format!("untouched from {at} on")),
                None => Wrong(format!(
                    "one of the seeds {possible:?} from {at} on (0 for zeros, 255 for 0xff)"
                )),
            };
        }
        Right
    }

    /// Whether pieces of a buffer may end inside a block.
    fn cuts_blocks(&self, cuts: &Cuts) -> bool {
        let odd = |(skip, len): &(usize, usize)| (skip | len) % SECTOR as usize != 0;
        !cuts.is_empty() && (self.settings.block() > SECTOR || cuts.iter().any(odd))
    }
}
