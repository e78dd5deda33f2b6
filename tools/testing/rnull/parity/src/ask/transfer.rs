// SPDX-License-Identifier: GPL-2.0

//! Transfers data, alone or several at once.

use super::Asker;
use crate::{
    aio,
    memory::Buffer,
    pattern,
    question::{By, Question},
    ring::{self, Transfer},
    system::{self, verdict},
};
use std::{collections::HashMap, fs::File, io, time::Duration};

/// When what has an `io_timeout` of 200 ms has timed out for certain: the block layer looks every
/// second.
const LATE: Duration = Duration::from_millis(2500);

/// What came of a transfer.
pub struct Transferred {
    pub said: String,
    pub offset: u64,
    /// What was read; where the disk did not touch memory, [`pattern::UNTOUCHED`].
    pub bytes: Vec<u8>,
}

/// A transfer before it begins.
struct Prepared<'a> {
    disk: &'a str,
    offset: u64,
    len: usize,
    write: bool,
    fua: bool,
    buffer: Buffer,
}

impl<'a> Prepared<'a> {
    fn new(question: &'a Question) -> Option<Self> {
        let (disk, offset, len, cuts) = match question {
            Question::Write {
                disk,
                offset,
                len,
                cuts,
                ..
            }
            | Question::Read {
                disk,
                offset,
                len,
                cuts,
            } => (disk, *offset, *len, cuts),
            _ => return None,
        };
        let mut buffer = Buffer::new(len, cuts);
        let (write, fua) = match question {
            Question::Write { seed, fua, .. } => {
                buffer.fill(&pattern::bytes(offset, len, *seed));
                (true, *fua)
            }
            _ => {
                buffer.fill(&vec![pattern::UNTOUCHED; len]);
                (false, false)
            }
        };
        Some(Self {
            disk,
            offset,
            len,
            write,
            fua,
            buffer,
        })
    }

    fn run(&mut self, disk: &File) -> io::Result<usize> {
        match self.write {
            true => self.buffer.write(disk, self.offset, self.fua),
            false => self.buffer.read(disk, self.offset),
        }
    }

    fn end(mut self, done: io::Result<usize>) -> Transferred {
        let said = match done {
            Ok(done) if done != self.len => format!("{done} bytes"),
            done => verdict(&done),
        };
        let bytes = if self.write {
            Vec::new()
        } else {
            self.buffer.row()
        };
        Transferred {
            said,
            offset: self.offset,
            bytes,
        }
    }
}

impl Asker {
    /// Asks for a transfer, or for several.
    pub fn transfer(&mut self, question: &Question) -> Vec<Transferred> {
        match question {
            Question::Together { by, parts } => self.together(parts, *by),
            _ => self.alone(question).into_iter().collect(),
        }
    }

    fn alone(&mut self, question: &Question) -> Option<Transferred> {
        let mut prepared = Prepared::new(question)?;
        let disk = system::open_disk(&self.node(prepared.disk));
        let done = disk.and_then(|disk| prepared.run(&disk));
        Some(prepared.end(done))
    }

    fn together(&mut self, parts: &[Question], by: By) -> Vec<Transferred> {
        let mut all: Vec<Prepared<'_>> = parts.iter().filter_map(Prepared::new).collect();
        let mut disks = HashMap::new();
        for part in &all {
            let open = || system::open_disk(&self.node(part.disk));
            disks.entry(part.disk).or_insert_with(open);
        }
        let transfers = all.iter_mut().filter_map(|part| {
            let disk = disks[part.disk].as_ref().ok()?;
            Some(Transfer {
                disk,
                buffer: &mut part.buffer,
                offset: part.offset,
                write: part.write,
                durable: part.fua,
            })
        });
        let mut transfers: Vec<_> = transfers.collect();
        let begin = |transfers: &mut [Transfer<'_>]| match by {
            By::Aio => aio::run(transfers),
            By::Ring => ring::run(transfers, None),
            By::Polling => ring::run(transfers, Some(Duration::ZERO)),
            By::Late => ring::run(transfers, Some(LATE)),
        };
        let mut done = match begin(&mut transfers) {
            Ok(done) => done.into_iter(),
            Err(why) => panic!("{by:?}: {why}"),
        };
        let end = |part: Prepared<'_>| {
            let done = match &disks[part.disk] {
                Ok(_) => done.next().expect("an end for each transfer"),
                Err(why) => Err(io::Error::from_raw_os_error(
                    why.raw_os_error().unwrap_or(0),
                )),
            };
            part.end(done)
        };
        all.into_iter().map(end).collect()
    }
}
