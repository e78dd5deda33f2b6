// SPDX-License-Identifier: GPL-2.0

//! The language of commands.
//!
//! A command is a line of words. Names of directories are those of configfs, `DISK0` is the first
//! disk made by parameters. A TEXT has `\s`, `\t`, `\n`, `\e` for blank, tab, newline, nothing;
//! offsets and lengths are in bytes. The answer is `ok` or an error number, and more where the
//! table says so.
//!
//! | command | answer, if it is more |
//! |---|---|
//! | `load PARAMETER=VALUE...` | a module that is loaded is unloaded first |
//! | `unload`, `try-unload` | the first waits for references that are about to be dropped |
//! | `parameters`, `attributes NAME` | all of them, with their values |
//! | `types`, `features` | those of parameters; the attributes that the driver has |
//! | `disk NAME`, `disks` | all that sysfs shows of the disk; the names of all disks |
//! | `counts NAME` | how many transfers of each kind the disk has done, in how many sectors |
//! | `log TEXT...` | how many messages since the case began, or since `load`, have that text |
//! | `traces` | all by which the driver can be seen |
//! | `files NAME` | the files of a device, with their modes |
//! | `mkdir NAME`, `rmdir NAME`, `rename NAME NAME`, `link NAME NAME` | |
//! | `set NAME/FILE TEXT`, `get NAME/FILE`, `mode NAME/FILE` | `set` adds what is read then |
//! | `open NAME/FILE r\|w\|rw` | |
//! | `device NAME ATTRIBUTE=VALUE...` | of mkdir, of all settings, of power on |
//! | `sysfs NAME FILE TEXT` | `set` below /sys/block/NAME |
//! | `write NAME OFFSET LEN SEED [fua] [cut=SKIP:LEN,...]` | |
//! | `read NAME OFFSET LEN [cut=SKIP:LEN,...]` | with what the bytes are |
//! | `batch threads\|io_uring\|polled\|late PART...` | of each: `write` or `read`, `/` for blanks |
//! | `discard`, `zero`, `secure-erase NAME OFFSET LEN`, `flush NAME` | |
//! | `report-zones`, `report-cached NAME OFFSET COUNT` | of each: see [`crate::zones`] |
//! | `open-zones`, `close-zones`, `finish-zones`, `reset-zones NAME OFFSET LEN` | |
//! | `partition NAME START+COUNT...` | writes such a table, in logical blocks |
//! | `partitions NAME` | those that the kernel knows, in sectors |
//! | `keep-open NAME`, `keep-open NAME/FILE`, `close ...` | opens the disk or file until `close` |
//! | `reread NAME/FILE`, `rewrite NAME/FILE TEXT` | through the file that is kept open |
//! | `timed MS MS COMMAND...` | with whether it took a time between these |

use crate::pattern;
use std::{fmt, slice, str::FromStr};

/// The pieces of a buffer: (offset in page, length).
pub type Cuts = Vec<(usize, usize)>;

/// The interface by which a batch of transfers is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A thread for each transfer.
    Threads,
    IoUring,
    /// io_uring with IORING_SETUP_IOPOLL.
    Polled,
    /// The same, but polls after all transfers have timed out.
    Late,
}

const ENGINES: [(&str, Engine); 4] = [
    ("threads", Engine::Threads),
    ("io_uring", Engine::IoUring),
    ("polled", Engine::Polled),
    ("late", Engine::Late),
];

/// The data of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Which pattern it is.
    pub seed: u32,
    pub fua: bool,
}

/// A write, or a read if it has no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub disk: String,
    pub offset: u64,
    pub len: usize,
    pub data: Option<Data>,
    pub cuts: Cuts,
}

/// A command to a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Words(Vec<String>),
    Transfer(Transfer),
    /// Transfers that are in flight at the same time.
    Batch(Engine, Vec<Transfer>),
}

/// The answer to a command of words, or to a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    /// The bytes read; where the disk did not change memory, [`pattern::UNTOUCHED`].
    pub bytes: Vec<u8>,
}

impl Command {
    pub fn words(words: &[&str]) -> Self {
        Self::Words(words.iter().map(|word| word.to_string()).collect())
    }

    pub fn transfers(&self) -> &[Transfer] {
        match self {
            Self::Words(_) => &[],
            Self::Transfer(transfer) => slice::from_ref(transfer),
            Self::Batch(_, transfers) => transfers,
        }
    }

    /// The engine of a batch.
    pub fn engine(&self) -> Option<Engine> {
        match self {
            Self::Batch(engine, _) => Some(*engine),
            _ => None,
        }
    }

    /// The answers as one text.
    pub fn describe(&self, answers: &[Answer]) -> String {
        let describe = |(i, answer): (usize, &Answer)| match self.transfers().get(i) {
            Some(transfer) if !answer.bytes.is_empty() => {
                let bytes = pattern::describe(transfer.offset, &answer.bytes);
                format!("{} {bytes}", answer.text)
            }
            _ => answer.text.clone(),
        };
        let all: Vec<_> = answers.iter().enumerate().map(describe).collect();
        all.join("; ")
    }
}

impl Transfer {
    fn parse(words: &[&str]) -> Option<Self> {
        let ([verb, disk, offset, len], mut rest) = words.split_first_chunk()?;
        let data = match *verb {
            "read" => None,
            "write" => {
                let (seed, more) = rest.split_first()?;
                let fua = more.first() == Some(&"fua");
                rest = &more[usize::from(fua)..];
                let seed = seed.parse().ok()?;
                Some(Data { seed, fua })
            }
            _ => return None,
        };
        let piece = |text: &str| {
            let (skip, len) = text.split_once(':')?;
            Some((skip.parse().ok()?, len.parse().ok()?))
        };
        Some(Self {
            disk: disk.to_string(),
            offset: offset.parse().ok()?,
            len: len.parse().ok()?,
            data,
            cuts: match rest {
                [] => Vec::new(),
                [text] => {
                    let pieces = text.strip_prefix("cut=")?.split(',');
                    pieces.map(piece).collect::<Option<_>>()?
                }
                _ => return None,
            },
        })
    }

    fn parse_batch(words: &[&str]) -> Option<Command> {
        let (engine, parts) = words.split_first()?;
        let (_, engine) = ENGINES.iter().find(|(name, _)| name == engine)?;
        let parse = |part: &&str| Self::parse(&part.split('/').collect::<Vec<_>>());
        let parts: Option<_> = parts.iter().map(parse).collect();
        Some(Command::Batch(*engine, parts?))
    }
}

impl FromStr for Command {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let command = match words[..] {
            [] => None,
            ["write" | "read", ..] => Transfer::parse(&words).map(Self::Transfer),
            ["batch", ref parts @ ..] => Transfer::parse_batch(parts),
            _ => Some(Self::words(&words)),
        };
        command.ok_or_else(|| format!("invalid command: {line}"))
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.data.is_some() { "write" } else { "read" };
        write!(f, "{verb} {} {} {}", self.disk, self.offset, self.len)?;
        if let Some(Data { seed, fua }) = self.data {
            write!(f, " {seed}{}", if fua { " fua" } else { "" })?;
        }
        for (i, (skip, len)) in self.cuts.iter().enumerate() {
            write!(f, "{}{skip}:{len}", if i == 0 { " cut=" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => write!(f, "{}", words.join(" ")),
            Self::Transfer(transfer) => write!(f, "{transfer}"),
            Self::Batch(engine, parts) => {
                let names = ENGINES.iter().filter(|(_, known)| known == engine);
                names
                    .into_iter()
                    .try_for_each(|(name, _)| write!(f, "batch {name}"))?;
                let mut parts = parts.iter().map(|part| part.to_string().replace(' ', "/"));
                parts.try_for_each(|part| write!(f, " {part}"))
            }
        }
    }
}

/// The text for which a word with `\s`, `\t`, `\n`, `\e` stands.
pub fn unescape(word: &str) -> String {
    let pairs = [("\\s", " "), ("\\t", "\t"), ("\\n", "\n"), ("\\e", "")];
    pairs.iter().fold(word.into(), |text: String, (from, to)| {
        text.replace(from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_as_they_are_printed() {
        for line in [
            "set a/size 5\\n",
            "write a 512 1024 7",
            "write a 0 4096 7 fua cut=2:10,0:512",
            "read a 0 512",
            "read a 0 512 cut=2:10",
            "batch threads write/a/0/512/7 read/b/512/1024/cut=2:10,0:512",
            "batch polled write/a/0/512/7/fua",
            "batch late read/a/0/512",
        ] {
            assert_eq!(line.parse::<Command>().unwrap().to_string(), line);
        }
        for line in [
            "write a b c",
            "read a 0 512 cut=1",
            "",
            "batch io_uring flush/a",
        ] {
            assert!(line.parse::<Command>().is_err(), "{line}");
        }
    }
}
