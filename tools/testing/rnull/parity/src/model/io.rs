// SPDX-License-Identifier: GPL-2.0

//! What becomes of reads, writes, discards.

use super::{
    device::Device,
    expect,
    media::{EMPTY, SECTOR},
    Answer, Judgement,
};
use crate::{pattern::UNTOUCHED, question::Question};
use Judgement::{Known, Right, Wrong};

/// What a cache keeps free for what comes next, with some more to be sure.
const ROOM: u64 = 256 << 10;

/// In what company a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is waited for before the next one.
    Alone,
    /// Others are under way at the same time.
    Together,
    /// The same, and their ends are polled for.
    Polled,
}

/// What an I/O is answered.
struct Outcome {
    said: String,
    /// The ranges of bytes that were transferred.
    moved: Vec<(u64, u64)>,
    /// The bytes that were asked for, as far as the disk goes.
    len: u64,
}

impl Device {
    /// What a request of whole blocks transfers, in sectors; bad ones end it.
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

    /// Divides an I/O into requests, and tells what becomes of it.
    fn outcome(&mut self, offset: u64, len: u64, writing: bool) -> Outcome {
        let outcome = |said: &str| Outcome {
            said: said.into(),
            moved: Vec::new(),
            len: 0,
        };
        if !self.on {
            return outcome("ENOENT");
        }
        let end = self.settings.get("size") << 20;
        if offset >= end && len > 0 {
            return outcome(if writing { "ENOSPC" } else { "0 bytes" });
        }
        let now = len.min(end - offset);
        if (offset | now) % self.settings.block() != 0 {
            return outcome("EINVAL");
        }
        if self.way == Way::Polled && !self.can_poll() {
            return outcome("EOPNOTSUPP");
        }
        let (mut at, mut good, mut lost, mut moved) = (offset, true, false, Vec::new());
        while at < offset + now {
            let bytes = self.settings.request().min(offset + now - at);
            if self.faults.lose() {
                lost = true;
                at += bytes;
                continue;
            }
            let (fine, sectors) = self.request(at / SECTOR, bytes / SECTOR);
            good &= fine;
            moved.push((at, at + sectors * SECTOR));
            at += bytes;
        }
        let said = match good {
            _ if lost => "ETIMEDOUT".into(),
            false => "EIO".into(),
            true if now < len => format!("{now} bytes"),
            true => "ok".into(),
        };
        Outcome {
            said,
            moved,
            len: now,
        }
    }

    /// Judges a write or a read.
    pub fn transfer(&mut self, question: &Question, way: Way, answer: &Answer) -> Judgement {
        self.way = way;
        match question {
            Question::Write {
                offset,
                len,
                seed,
                fua,
                cuts,
                ..
            } => {
                if self.cut_inside(cuts) {
                    self.spoil(12);
                }
                let outcome = self.outcome(*offset, *len as u64, true);
                self.keep(&outcome, *seed, *fua);
                expect(&outcome.said, answer)
            }
            Question::Read {
                offset, len, cuts, ..
            } => self.read(*offset, *len as u64, cuts, answer),
            _ => Right,
        }
    }

    fn keep(&mut self, outcome: &Outcome, content: u32, fua: bool) {
        if !self.settings.is("memory_backed") {
            return;
        }
        let block = self.settings.block();
        if outcome.len > 0 && self.written_block.is_some_and(|other| other != block) {
            self.spoil(13);
        }
        if outcome.len > 0 {
            self.written_block = Some(block);
        }
        // What fails is not flushed.
        let through = fua && (self.settings.is("fua") || !outcome.said.starts_with('E'));
        let cached = self.settings.get("cache_size") > 0 && !through;
        let size = self.settings.get("cache_size") << 20;
        // rnull stores some pages before the cache is full, perhaps some that it changes then.
        // null_blk writes past it where a page is stored already.
        if cached && (self.in_c || self.media.cached_with(&outcome.moved) + ROOM > size) {
            self.media.leak();
        }
        for (from, to) in &outcome.moved {
            for sector in from / SECTOR..to / SECTOR {
                self.media.write(sector, content, cached);
            }
        }
        // Without FUA the kernel makes the cache empty after it, with what else is in it by then.
        if fua && !self.settings.is("fua") {
            self.media.leak();
        }
        // After a write of its own that is to be durable the kernel makes the cache empty, too.
        if fua && self.way == Way::Alone && !outcome.said.starts_with('E') {
            self.media.flush();
        }
    }

    /// Judges a discard, or that sectors were made zero.
    pub fn erase(
        &mut self,
        offset: u64,
        len: u64,
        offered: bool,
        zero: bool,
        answer: &Answer,
    ) -> Judgement {
        if !self.on {
            return expect("ENOENT", answer);
        }
        if !offered {
            return expect("EOPNOTSUPP", answer);
        }
        let end = self.settings.get("size") << 20;
        let block = self.settings.block();
        if offset % block != 0 || len % block != 0 || len == 0 || offset + len > end {
            return expect("EINVAL", answer);
        }
        self.way = Way::Alone;
        if zero {
            let outcome = self.outcome(offset, len, true);
            self.keep(&outcome, EMPTY, false);
            return expect(&outcome.said, answer);
        }
        if self.faults.lose() {
            return expect("ETIMEDOUT", answer);
        }
        let (good, sectors) = self.request(offset / SECTOR, len / SECTOR);
        let first = offset / SECTOR;
        for sector in first..first + sectors {
            self.media.write(sector, EMPTY, false);
        }
        if block > 4096 {
            self.spoil(3);
        }
        expect(if good { "ok" } else { "EIO" }, answer)
    }

    /// Judges a read: its words, then each byte.
    fn read(
        &mut self,
        offset: u64,
        len: u64,
        cuts: &[(usize, usize)],
        answer: &Answer,
    ) -> Judgement {
        if self
            .written_block
            .is_some_and(|other| other != self.settings.block())
        {
            self.spoil(13);
        }
        let outcome = self.outcome(offset, len, false);
        if answer.said != outcome.said {
            return Wrong(format!("'{}'", outcome.said));
        }
        let backed = self.settings.is("memory_backed");
        let moved = |at: u64| {
            backed
                && outcome
                    .moved
                    .iter()
                    .any(|(from, to)| (*from..*to).contains(&at))
        };
        for (i, bytes) in answer.bytes.chunks(SECTOR as usize).enumerate() {
            let at = offset + i as u64 * SECTOR;
            let right = if moved(at) {
                self.media.read(at / SECTOR, bytes)
            } else if *bytes == [UNTOUCHED; SECTOR as usize][..bytes.len()] {
                Ok(())
            } else {
                Err(Vec::new())
            };
            if let Err(possible) = right {
                return self.wrong_data(at, &possible, cuts);
            }
        }
        Right
    }

    /// Whether pieces of a buffer may end inside a block.
    fn cut_inside(&self, cuts: &[(usize, usize)]) -> bool {
        let whole = |n: &usize| n % SECTOR as usize == 0;
        let odd = cuts.iter().any(|(skip, len)| !whole(skip) || !whole(len));
        !cuts.is_empty() && (odd || self.settings.block() > SECTOR)
    }

    fn wrong_data(&self, at: u64, possible: &[u32], cuts: &[(usize, usize)]) -> Judgement {
        if let Some(defect) = self.spoilt {
            return Known(defect);
        }
        if self.in_c && self.cut_inside(cuts) {
            return Known(12);
        }
        let names: Vec<String> = possible
            .iter()
            .map(|content| match *content {
                EMPTY => "zero".into(),
                seed => format!("#{seed}"),
            })
            .collect();
        match names.is_empty() {
            true => Wrong(format!("untouched from {at} on")),
            false => Wrong(format!("{} from {at} on", names.join(" or "))),
        }
    }
}
