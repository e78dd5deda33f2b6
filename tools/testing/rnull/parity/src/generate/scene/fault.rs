// SPDX-License-Identifier: GPL-2.0

//! Faults that are certain, each with what it happens to.

use super::Scene;
use crate::question::Question;
use proptest::sample::Index;

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A request gets lost, so that it times out.
    Lost,
    /// Requests are queued again, so many times.
    SentBack(u32),
    /// One that would be lost is queued again, which saves it.
    Saved,
    /// A hardware queue cannot be made at power-on.
    NoQueue,
}

/// What it happens to.
#[derive(Clone, Copy, Debug)]
pub enum Victim {
    Read,
    Write(u32),
    Discard,
    Flush,
}

/// So many bytes are one request, whatever the disk.
const ONE_REQUEST: u64 = 64 << 10;

/// How long a request may take that gets lost, in milliseconds; usually.
const TIMEOUT: (&str, &str) = ("200", "5000");

impl Scene<'_> {
    /// Lets a fault happen, if the drivers have any.
    pub(super) fn fault(&mut self, fault: Fault, victim: Victim, at: Index, blocks: u64) {
        if !self.faults {
            return;
        }
        match fault {
            Fault::Lost => {
                self.time(TIMEOUT.0);
                self.with("timeout_inject", 1, |scene| {
                    scene.victim(victim, at, blocks)
                });
                self.time(TIMEOUT.1);
            }
            Fault::SentBack(times) => {
                self.with("requeue_inject", times, |scene| {
                    scene.victim(victim, at, blocks);
                });
            }
            Fault::Saved => self.with("requeue_inject", 1, |scene| {
                scene.with("timeout_inject", 1, |scene| {
                    scene.victim(victim, at, blocks)
                });
            }),
            Fault::NoQueue => {
                self.put("power", "0");
                self.with("init_hctx_fault_inject", 1, |scene| scene.put("power", "1"));
                self.put("power", "1");
            }
        }
    }

    /// Sets how long a request may take.
    fn time(&mut self, milliseconds: &str) {
        self.ask(&["sysfs", self.name(), "queue/io_timeout", milliseconds]);
    }

    /// Does something while faults are certain, so many times.
    fn with(&mut self, kind: &str, times: u32, then: impl FnOnce(&mut Self)) {
        let (times, name) = (times.to_string(), self.name());
        let turn = |scene: &mut Self, knob: &str, text: &str| {
            scene.ask(&["put", &format!("{name}/{kind}/{knob}"), text]);
        };
        // Else the kernel prints where it was.
        turn(self, "verbose", "0");
        turn(self, "times", &times);
        turn(self, "probability", "100");
        then(self);
        turn(self, "probability", "0");
    }

    /// One request, which does not last: of one that does it is not known what happens to it.
    fn victim(&mut self, victim: Victim, at: Index, blocks: u64) {
        let (offset, len) = self.place(at, blocks);
        let len = len.min(ONE_REQUEST);
        match victim {
            Victim::Read => self.read(offset, len, Vec::new()),
            Victim::Write(seed) => self.asked.push(Question::Write {
                disk: self.name().into(),
                offset,
                len: len as usize,
                seed,
                fua: false,
                cuts: Vec::new(),
            }),
            Victim::Discard => self.discard(offset, len),
            Victim::Flush => self.ask(&["flush", self.name()]),
        }
    }
}
