// SPDX-License-Identifier: GPL-2.0

//! What a device has to answer.
//!
//! Pure: knows neither drivers nor the kernel, so it is tested on the host. A [`Model`] follows one
//! device from mkdir on. [`Model::judge`] is shown each question with the answer, says whether the
//! answer was right, and learns from it where a device has a choice: data in a cache may survive a
//! power cycle or not.

pub mod device;

pub mod io;

pub mod media;

pub mod bad;

pub mod settings;

use crate::question::Question;
use device::Device;
use io::Way;

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
    /// Wrong in the way of a known defect of null_blk, the number of which is given.
    Known(u32),
    /// Wrong: what would be right.
    Wrong(String),
}

impl Judgement {
    fn weight(&self) -> u8 {
        match self {
            Self::Right => 0,
            Self::Known(_) => 1,
            Self::Wrong(_) => 2,
        }
    }
}

/// What the machine allows.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub cpus: u64,
    /// The parameter `poll_queues`.
    pub poll_queues: u64,
}

/// One device as it should be.
#[derive(Clone, Debug)]
pub struct Model {
    device: Option<Device>,
    machine: Machine,
    /// Whether the device is null_blk's, and has its defects.
    in_c: bool,
}

impl Model {
    /// The model of a device that is not there yet.
    pub fn new(machine: Machine, in_c: bool) -> Self {
        Self {
            device: None,
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
            Question::Together { polled, parts } => {
                let way = if *polled { Way::Polled } else { Way::Together };
                let judge = |(part, answer)| self.transfer(part, way, answer);
                let judgements: Vec<_> = parts.iter().zip(answers).map(judge).collect();
                let mut worst = judgements.into_iter().max_by_key(Judgement::weight);
                worst.take().unwrap_or(Judgement::Right)
            }
            _ => self.transfer(question, Way::Alone, &answers[0]),
        }
    }

    fn words(&mut self, words: &[&str], answer: &Answer) -> Judgement {
        match *words {
            ["mkdir", _] => {
                self.device
                    .get_or_insert_with(|| Device::new(self.machine, self.in_c));
                expect("ok", answer)
            }
            _ => match &mut self.device {
                Some(device) => device.words(words, answer),
                None => Judgement::Right,
            },
        }
    }

    fn transfer(&mut self, question: &Question, way: Way, answer: &Answer) -> Judgement {
        match &mut self.device {
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
