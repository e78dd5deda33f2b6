// SPDX-License-Identifier: GPL-2.0

//! What a device has to answer.
//!
//! Pure: knows neither drivers nor the kernel, so it is tested on the host. A [`Model`] follows one
//! driver from its loading on. [`Model::judge`] is shown each question with the answer, says whether the
//! answer was right, and learns from it where a device has a choice: data in a cache may survive a
//! power cycle or not.

pub mod device;

pub mod io;

pub mod media;

pub mod bad;

pub mod fault;

pub mod settings;

use crate::question::{By, Question};
use device::Device;
use io::Way;
use settings::Settings;
use std::collections::BTreeMap;

/// What a driver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The words.
    pub said: String,
    /// The bytes, if a disk was read.
    pub bytes: Vec<u8>,
}

/// What the model makes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Right,
    /// As the other driver answers; the model knows no more.
    Alike,
    /// Wrong in the way of a known defect of null_blk, the number of which is given.
    Known(u32),
    /// Wrong: what would be right.
    Wrong(String),
}

impl Judgement {
    fn weight(&self) -> u8 {
        match self {
            Self::Right | Self::Alike => 0,
            Self::Known(_) => 1,
            Self::Wrong(_) => 2,
        }
    }
}

/// What the machine allows.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub cpus: u64,
    /// The parameter `poll_queues`, the most that a device may have.
    pub poll_queues: u64,
}

/// A driver as it should be.
#[derive(Clone, Debug)]
pub struct Model {
    devices: BTreeMap<String, Device>,
    /// What the parameters make of a new device.
    settings: Settings,
    machine: Machine,
    /// Whether the driver is null_blk, and has its defects.
    in_c: bool,
}

impl Model {
    /// The model of a driver without devices, loaded without parameters.
    pub fn new(machine: Machine, in_c: bool) -> Self {
        Self {
            devices: BTreeMap::new(),
            settings: Settings::default(),
            machine,
            in_c,
        }
    }

    /// Judges what was answered: to each part, if the question has some.
    pub fn judge(&mut self, question: &Question, answers: &[Answer]) -> Judgement {
        match question {
            Question::Words(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.words(&words, &answers[0])
            }
            Question::Together { by, parts } => {
                let polled = matches!(by, By::Polling | By::Late);
                let way = if polled { Way::Polled } else { Way::Together };
                let judge = |(part, answer)| self.transfer(part, way, answer);
                let judgements: Vec<_> = parts.iter().zip(answers).map(judge).collect();
                let mut worst = judgements.into_iter().max_by_key(Judgement::weight);
                worst.take().unwrap_or(Judgement::Right)
            }
            _ => self.transfer(question, Way::Alone, &answers[0]),
        }
    }

    /// Whether the devices of both drivers are in the same state, as far as settings go.
    pub fn is_like(&self, other: &Self) -> bool {
        let mut pairs = self.devices.iter().zip(&other.devices);
        pairs.all(|(one, another)| one.0 == another.0 && one.1.is_like(another.1))
    }

    /// Whether null_blk would harm the kernel from here on.
    pub fn is_dangerous(&self) -> bool {
        self.devices.values().any(Device::overruns)
    }

    fn words(&mut self, words: &[&str], answer: &Answer) -> Judgement {
        match *words {
            ["load", ref parameters @ ..] => {
                self.load(parameters);
                expect("ok", answer)
            }
            ["mkdir", name] if !self.devices.contains_key(name) => {
                let device = Device::new(self.settings.clone(), self.machine, self.in_c);
                self.devices.insert(name.into(), device);
                expect("ok", answer)
            }
            [_, path, ..] => {
                let name = path.split('/').next().unwrap_or_default();
                match self.devices.get_mut(name) {
                    Some(device) => device.words(words, answer),
                    None => Judgement::Right,
                }
            }
            _ => Judgement::Right,
        }
    }

    /// The driver is loaded again, with parameters that are in their range.
    fn load(&mut self, parameters: &[&str]) {
        self.devices.clear();
        self.settings = Settings::default();
        for parameter in parameters {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, "1"));
            if let (Some(kind), Ok(value)) = (Settings::kind(name), value.parse()) {
                let flag = kind == settings::Kind::Bool;
                self.settings
                    .set(name, if flag { u64::from(value != 0) } else { value });
            }
        }
        self.machine.poll_queues = self.settings.get("poll_queues");
    }

    fn transfer(&mut self, question: &Question, way: Way, answer: &Answer) -> Judgement {
        let device = question.disk().and_then(|disk| self.devices.get_mut(disk));
        match device {
            Some(device) => device.transfer(question, way, answer),
            None => expect("ENOENT", answer),
        }
    }
}

/// Judges words.
fn expect(right: &str, answer: &Answer) -> Judgement {
    if answer.said == right {
        Judgement::Right
    } else {
        Judgement::Wrong(format!("'{right}'"))
    }
}
