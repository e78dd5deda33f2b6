// SPDX-License-Identifier: GPL-2.0

//! Transfers that are in the air at once, so that it does not matter which of them is first.

use super::{Scene, AREA};
use crate::{
    generate::operation::{Part, PARTS},
    question::{By, Question},
};

/// So many bytes fit into one request, whatever the disk.
const ONE_REQUEST: u64 = 64 << 10;

impl Scene<'_> {
    /// A transfer in one of as many parts of the disk as there may be transfers. It does not reach
    /// the next part, lest the block layer make one request of two.
    fn part(&mut self, slot: usize, longest: u64, part: Part) -> Question {
        self.now = part.disk.index(self.devices.len());
        let room = AREA / PARTS as u64;
        let len = (part.blocks * self.block()).min(longest);
        let len = len.min(room - self.block());
        let places = (room - len) / self.block();
        let offset = slot as u64 * room + part.at.index(places as usize) as u64 * self.block();
        let (disk, len, cuts) = (self.name().into(), len as usize, self.cuts(part.cuts));
        match part.write {
            Some((seed, fua)) => Question::Write {
                disk,
                offset,
                len,
                seed,
                fua,
                cuts,
            },
            None => Question::Read {
                disk,
                offset,
                len,
                cuts,
            },
        }
    }

    /// Transfers that are in the air at once.
    pub(super) fn together(&mut self, parts: Vec<Part>, first: usize, by: By) {
        // Which of them meets sectors first that are bad once is chance.
        let once = self.once;
        let good = |slot: &usize| !once || *slot > 1;
        let slots = (0..PARTS).map(|i| (first + i * 3) % PARTS).filter(good);
        // A flush that goes to a polled queue is none on null_blk, and nobody polls for it for certain.
        let durably = !(by == By::Polling && self.cache);
        // What io_uring may not wait for, a tag or the second request of one transfer, it leaves to a
        // thread of its own. In emulated guests some of that was lost, with nothing under way in the
        // block layer, whichever the driver was.
        let waits = by == By::Aio;
        // When null_blk is polled it may wait for memory where it must not, which kernels notice that have
        // faults.
        let writes = !(by == By::Polling && self.faults);
        let most = if self.shallow && !waits { 1 } else { PARTS };
        let longest = if waits { AREA } else { ONE_REQUEST };
        let part = |(slot, part): (usize, Part)| {
            let write = part.write.filter(|_| writes);
            let write = write.map(|(seed, fua)| (seed, fua && durably));
            self.part(slot, longest, Part { write, ..part })
        };
        let parts = slots.zip(parts).take(most).map(part).collect();
        self.asked.push(Question::Together { by, parts });
    }
}
