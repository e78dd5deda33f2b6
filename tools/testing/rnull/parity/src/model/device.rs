// SPDX-License-Identifier: GPL-2.0

//! One device, on or off, with its settings, its data, its bad sectors.

use super::{
    bad::Bad,
    expect,
    fault::Faults,
    io::Way,
    media::Media,
    settings::{self, Settings},
    Answer, Judgement, Machine,
};
use crate::question::unescape;
use Judgement::{Alike, Right, Wrong};

/// Sectors whose data is followed; tests stay within them.
pub const SECTORS: u64 = 8192;

/// One device.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) settings: Settings,
    pub(super) machine: Machine,
    pub(super) on: bool,
    /// Whether it was on with a cache.
    ever_cached: bool,
    /// Whether there were polled queues at power-on.
    polls: bool,
    /// Whether there are some among the queues that go with shared tags.
    shared_polls: bool,
    /// In what company the transfer is that is asked about.
    pub(super) way: Way,
    pub(super) media: Media,
    pub(super) bad: Bad,
    pub(super) faults: Faults,
    /// The defect because of which null_blk's data may be wrong from now on.
    pub(super) spoilt: Option<u32>,
    pub(super) in_c: bool,
    /// Whether blocks of another size were written than those of now.
    pub(super) written_block: Option<u64>,
}

impl Device {
    /// A device that was just made.
    pub fn new(settings: Settings, machine: Machine, in_c: bool) -> Self {
        Self {
            shared_polls: settings.is("poll_queues"),
            settings,
            machine,
            on: false,
            ever_cached: false,
            polls: false,
            way: Way::Alone,
            media: Media::new(SECTORS),
            bad: Bad::new(SECTORS),
            faults: Faults::default(),
            spoilt: None,
            in_c,
            written_block: None,
        }
    }

    /// Judges the answer to a question of words; those that it does not know are right.
    pub fn words(&mut self, words: &[&str], answer: &Answer) -> Judgement {
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        match *words {
            ["mkdir", _] => expect("EEXIST", answer),
            ["put", path, text] => {
                let attribute = path.split_once('/').map_or("", |(_, file)| file);
                let text = unescape(text);
                match attribute {
                    "power" => self.power(&text, answer),
                    "badblocks" => self.mark(&text, answer),
                    _ if self.faults.turn(attribute, &text) => {
                        expect(&format!("ok {text}"), answer)
                    }
                    _ => self.put(attribute, &text, answer),
                }
            }
            ["disk", _] if self.on => Alike,
            ["disk", _] => expect("no disk", answer),
            ["values", _] => self.values(answer),
            ["discard", _, offset, len] => {
                let offered = self.settings.is("discard");
                self.erase(number(offset), number(len), offered, false, answer)
            }
            ["zero", _, offset, len] => self.erase(number(offset), number(len), true, true, answer),
            ["flush", _] => {
                if !self.on {
                    return expect("ENOENT", answer);
                }
                // Without a cache there is no request.
                if self.settings.is("cache_size") && self.faults.lose() {
                    return expect("ETIMEDOUT", answer);
                }
                self.media.flush();
                expect("ok", answer)
            }
            _ => Right,
        }
    }

    /// Whether all that can be seen of both but their data should be the same.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.on, self.polls, &self.settings) == (other.on, other.polls, &other.settings)
    }

    /// Whether null_blk would write beyond its pages: it has a cache, or had one before, over blocks
    /// larger than a page (defect 4).
    pub fn overruns(&self) -> bool {
        self.on && self.ever_cached && self.settings.block() > 4096
    }

    fn put(&mut self, name: &str, text: &str, answer: &Answer) -> Judgement {
        let Some(kind) = Settings::kind(name) else {
            return Right;
        };
        let old = self.settings.get(name);
        let live = matches!(name, "submit_queues" | "poll_queues");
        let verdict = match settings::parse(kind, text) {
            _ if text.is_empty() => Err("EFAULT"),
            Err(why) => Err(why),
            Ok(_) if self.on && !live => Err("EBUSY"),
            Ok(count) if self.on => self.queues(name, count).map(|()| count),
            Ok(value) => Ok(value),
        };
        let (said, value) = match verdict {
            Ok(value) => ("ok", value),
            Err(why) => (why, old),
        };
        self.settings.set(name, value);
        expect(&format!("{said} {value}"), answer)
    }

    /// Whether a disk that is on may have so many queues.
    fn queues(&self, name: &str, count: u64) -> Result<(), &'static str> {
        let most = match name {
            "submit_queues" => self.machine.cpus,
            _ => self.machine.poll_queues,
        };
        let none = name == "submit_queues" && count == 0;
        if self.settings.is("shared_tags") || none || count > most {
            Err("EINVAL")
        } else if self.in_c && !self.polls && count + self.other_queues(name) > self.machine.cpus {
            // Without a map for them null_blk's polled queues count as others.
            Err("ENOMEM")
        } else {
            Ok(())
        }
    }

    /// Whether there are queues whose requests are polled for.
    pub(super) fn can_poll(&self) -> bool {
        match self.settings.is("shared_tags") {
            true => self.shared_polls,
            false => self.polls && self.settings.is("poll_queues"),
        }
    }

    /// The queues of the other kind.
    fn other_queues(&self, name: &str) -> u64 {
        let other = match name {
            "submit_queues" => "poll_queues",
            _ => "submit_queues",
        };
        self.settings.get(other)
    }

    fn power(&mut self, text: &str, answer: &Answer) -> Judgement {
        let wanted = match settings::parse(settings::Kind::Bool, text) {
            _ if text.is_empty() => Err("EFAULT"),
            parsed => parsed,
        };
        let had_cache = self.settings.get("cache_size") > 0;
        let verdict = match wanted {
            Err(why) => Err(why),
            Ok(1) if !self.on => self.power_on(),
            Ok(_) => Ok(()),
        };
        if let (Ok(wanted), Ok(())) = (wanted, verdict) {
            if self.on && wanted == 0 {
                self.media.lose_power();
                // null_blk goes on with its cache if the next power-on is without one.
                if had_cache {
                    self.spoil(1);
                }
            }
            if wanted == 1 && !self.on {
                self.ever_cached |= self.settings.is("cache_size");
                self.polls = self.settings.is("poll_queues");
            }
            self.on = wanted == 1;
        }
        expect(
            &format!("{} {}", verdict.err().unwrap_or("ok"), u8::from(self.on)),
            answer,
        )
    }

    fn power_on(&mut self) -> Result<(), &'static str> {
        let before = self.settings.clone();
        self.settings.power_on(&self.machine, self.in_c)?;
        if !self.faults.break_queue() {
            return Ok(());
        }
        // null_blk has changed what it shows by then.
        if !self.in_c {
            self.settings = before;
        }
        Err("ENOMEM")
    }

    pub(super) fn spoil(&mut self, defect: u32) {
        if self.in_c && self.spoilt.is_none() {
            self.spoilt = Some(defect);
        }
    }

    fn values(&mut self, answer: &Answer) -> Judgement {
        for word in answer.said.split(' ') {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
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
    fn mark(&mut self, text: &str, answer: &Answer) -> Judgement {
        let range = || {
            let text = text.trim();
            let (first, last) = text.get(1..)?.split_once('-')?;
            let bad = match text.as_bytes()[0] {
                b'+' => true,
                b'-' => false,
                _ => return None,
            };
            Some((bad, settings::number(first), settings::number(last)))
        };
        let verdict = match range() {
            _ if text.is_empty() => Err("EFAULT"),
            None => Err("EINVAL"),
            Some((_, Err(why), _)) | Some((_, _, Err(why))) => Err(why),
            Some((_, Ok(first), Ok(last))) if first > last => Err("EINVAL"),
            Some((bad, Ok(first), Ok(last))) => {
                self.bad.mark(first, last, bad);
                Ok(())
            }
        };
        let (said, shown) = answer.said.split_once(' ').unwrap_or((&answer.said, ""));
        if said != verdict.err().unwrap_or("ok") {
            return Wrong(format!("{verdict:?}"));
        }
        if self.bad.are(shown) {
            Right
        } else {
            Wrong(format!("bad: {}", self.bad))
        }
    }
}
