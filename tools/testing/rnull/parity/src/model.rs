// SPDX-License-Identifier: GPL-2.0

//! A model of the drivers, which judges their answers.
//!
//! It is pure, so that it is tested on the host. A [`Model`] follows one driver from its loading
//! on. [`Model::judge`] takes each command with the answers, says whether they are right, but also
//! learns from them: data in a cache may survive a power cycle or not.

mod badblocks;
mod device;
mod faults;
mod media;
mod settings;
pub mod zones;

use crate::command::{Answer, Command, Engine, Transfer};
use device::Device;
use settings::Settings;
use std::collections::BTreeMap;
use zones::Zones;

/// The judgement of an answer, the worst last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    Right,
    /// Right if the other driver answers the same; the model does not know more.
    SameAsOther,
    /// Wrong because of a known defect of null_blk, by its number.
    Defect(u32),
    /// Wrong: what would be right.
    Wrong(String),
}

/// The limits of the system.
#[derive(Clone, Copy, Debug)]
pub struct System {
    pub cpus: u64,
    /// The parameter `poll_queues`, the most that a device may have.
    pub poll_queues: u64,
}

/// A driver without mistakes.
#[derive(Clone, Debug)]
pub struct Model {
    devices: BTreeMap<String, Device>,
    /// The defaults of a new device.
    settings: Settings,
    system: System,
    /// Whether the driver is null_blk, with its known defects.
    is_null_blk: bool,
}

impl Model {
    /// The model of a driver without devices, loaded without parameters.
    pub fn new(system: System, is_null_blk: bool) -> Self {
        Self {
            devices: BTreeMap::new(),
            settings: Settings::default(),
            system,
            is_null_blk,
        }
    }

    /// Judges the answers to a command.
    pub fn judge(&mut self, command: &Command, answers: &[Answer]) -> Judgement {
        if let Command::Words(words) = command {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            return self.words(&words, &answers[0]);
        }
        let engine = command.engine();
        if engine == Some(Engine::Threads) {
            // The flush after a durable write may come before the other writes, or after them.
            let durable = |transfer: &&Transfer| transfer.data.is_some_and(|data| data.fua);
            for transfer in command.transfers().iter().filter(durable) {
                let device = self.devices.get_mut(&transfer.disk);
                device.into_iter().for_each(Device::may_flush);
            }
        }
        let all = command.transfers().iter().zip(answers);
        let worst = all
            .map(|(transfer, answer)| self.transfer(transfer, engine, answer))
            .max();
        worst.unwrap_or(Judgement::Right)
    }

    /// Whether all but the data of the devices of both drivers is in the same state.
    pub fn is_like(&self, other: &Self) -> bool {
        let mut pairs = self.devices.iter().zip(&other.devices);
        pairs.all(|(a, b)| a.0 == b.0 && a.1.is_like(b.1))
    }

    /// Whether null_blk would corrupt the kernel's memory from now on.
    pub fn is_dangerous(&self) -> bool {
        self.devices.values().any(Device::overruns)
    }

    /// Whether null_blk would pass by the zones of a disk, as it does when it is polled (defect 7).
    pub fn bypasses_zones(&self, command: &Command) -> bool {
        let polled = matches!(command.engine(), Some(Engine::Polled | Engine::Late));
        let zoned = |transfer: &Transfer| self.zones(&transfer.disk).is_some();
        polled && command.transfers().iter().any(zoned)
    }

    /// The zones of a disk, if it is on and has some.
    pub fn zones(&self, name: &str) -> Option<&Zones> {
        self.devices.get(name)?.zones()
    }

    fn words(&mut self, words: &[&str], answer: &Answer) -> Judgement {
        match *words {
            ["load", ref parameters @ ..] => {
                self.load(parameters);
                expect("ok", answer)
            }
            ["mkdir", name] if !self.devices.contains_key(name) => {
                let device = Device::new(self.settings.clone(), self.system, self.is_null_blk);
                self.devices.insert(name.into(), device);
                expect("ok", answer)
            }
            [_, path, ..] => {
                let name = path.split('/').next().unwrap_or_default();
                let device = self.devices.get_mut(name);
                device.map_or(Judgement::Right, |device| device.words(words, answer))
            }
            _ => Judgement::Right,
        }
    }

    /// The driver is loaded again, with parameters that are in range.
    fn load(&mut self, parameters: &[&str]) {
        self.devices.clear();
        self.settings = Settings::default();
        for parameter in parameters {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, "1"));
            if let (Some(kind), Ok(value)) = (Settings::kind(name), value.parse::<u64>()) {
                let is_bool = kind == settings::Kind::Bool;
                self.settings
                    .set(name, if is_bool { value.min(1) } else { value });
            }
        }
        self.system.poll_queues = self.settings.get("poll_queues");
    }

    fn transfer(
        &mut self,
        transfer: &Transfer,
        engine: Option<Engine>,
        answer: &Answer,
    ) -> Judgement {
        match self.devices.get_mut(&transfer.disk) {
            Some(device) => device.transfer(transfer, engine, answer),
            None => expect("ENOENT", answer),
        }
    }
}

/// Judges the text of an answer.
fn expect(right: &str, answer: &Answer) -> Judgement {
    if answer.text == right {
        Judgement::Right
    } else {
        Judgement::Wrong(format!("'{right}'"))
    }
}
