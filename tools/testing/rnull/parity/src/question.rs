// SPDX-License-Identifier: GPL-2.0

//! The language of questions.
//!
//! One question a line, in words. Names of directories are those of configfs, `DISK0` is the
//! first disk made by parameters. A text has `\s`, `\t`, `\n` for blank, tab, newline; numbers
//! are in bytes.
//!
//! | question | answer |
//! |---|---|
//! | `load PARAMETER=VALUE...` | what the kernel said; a driver that is there is unloaded first |
//! | `unload`, `unload-now` | with patience, without |
//! | `parameters`, `types`, `values NAME`, `features` | all of them |
//! | `disk NAME`, `disks` | all that sysfs shows; the names of all disks |
//! | `counts NAME` | how many transfers of which kind the disk has seen, in how many sectors |
//! | `log TEXT...` | how many messages of the driver with that text came since the case began, or since `load` |
//! | `left` | all by which the driver can be seen |
//! | `files NAME` | the files of a device, with their modes |
//! | `mkdir NAME`, `rmdir NAME`, `rename NAME NAME`, `link NAME NAME` | |
//! | `put NAME/FILE TEXT`, `get NAME/FILE`, `mode NAME/FILE` | `put` tells what is there then, too |
//! | `open NAME/FILE r\|w\|rw` | |
//! | `device NAME ATTRIBUTE=VALUE...` | mkdir, all settings, power on |
//! | `sysfs NAME FILE TEXT` | written below /sys/block/NAME |
//! | `write NAME OFFSET LEN SEED [fua] [cut=SKIP:LEN,...]` | |
//! | `read NAME OFFSET LEN [cut=SKIP:LEN,...]` | with what the bytes are |
//! | `together aio\|ring\|polled\|late PART...` | of each part what it says; a part is `write` or `read` with `/` for blanks |
//! | `discard`, `zero`, `secure-erase NAME OFFSET LEN`, `flush NAME` | |
//! | `divide NAME START+COUNT...` | such a table of partitions, in logical blocks, written and read by the kernel |
//! | `partitions NAME` | those that there are, in sectors |
//! | `hold NAME`, `hold NAME/FILE`, `drop ...` | keeps the disk or the file open |
//! | `held NAME/FILE`, `held NAME/FILE TEXT` | what a file that is kept open says for the first time, or to a text |
//! | `lasts MS MS QUESTION...` | also whether it took a time between these |

use std::{fmt, str::FromStr};

/// A buffer's pieces: (offset in page, length).
pub type Cuts = Vec<(usize, usize)>;

/// By what interface several transfers are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The older one, which waits for tags.
    Aio,
    /// io_uring.
    Ring,
    /// The same, and their ends are polled for.
    Polling,
    /// The same, but not before all of them have timed out.
    Late,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Aio => "aio",
            Self::Ring => "ring",
            Self::Polling => "polled",
            Self::Late => "late",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        let mut all = [Self::Aio, Self::Ring, Self::Polling, Self::Late].into_iter();
        all.find(|by| by.word() == word)
    }
}

/// What a driver is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A command of words only.
    Words(Vec<String>),
    /// Data to a disk.
    Write {
        disk: String,
        offset: u64,
        len: usize,
        seed: u32,
        fua: bool,
        cuts: Cuts,
    },
    /// Data from a disk.
    Read {
        disk: String,
        offset: u64,
        len: usize,
        cuts: Cuts,
    },
    /// Writes and reads that are under way at the same time.
    Together { by: By, parts: Vec<Question> },
}

impl Question {
    /// Makes a question of words.
    pub fn words(words: &[&str]) -> Self {
        Self::Words(words.iter().map(|word| word.to_string()).collect())
    }

    /// The disk of a transfer.
    pub fn disk(&self) -> Option<&str> {
        match self {
            Self::Write { disk, .. } | Self::Read { disk, .. } => Some(disk),
            _ => None,
        }
    }

    fn is_transfer(&self) -> bool {
        self.disk().is_some()
    }

    /// The attributes (false) or parameters (true) without which the question makes no sense.
    pub fn needs(&self) -> Vec<(bool, String)> {
        let Self::Words(words) = self else {
            return Vec::new();
        };
        let names = |parameter, words: &[String]| {
            words
                .iter()
                .filter_map(|word| word.split('=').next())
                .map(|name| (parameter, name.to_string()))
                .collect()
        };
        match words[0].as_str() {
            "load" => names(true, &words[1..]),
            "device" => names(false, &words[2..]),
            "put" | "get" | "mode" | "open" => words[1]
                .split_once('/')
                .map(|(_, file)| (false, file.to_string()))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn cuts(text: &str) -> Option<Cuts> {
    text.strip_prefix("cut=")?
        .split(',')
        .map(|piece| {
            let (skip, len) = piece.split_once(':')?;
            Some((skip.parse().ok()?, len.parse().ok()?))
        })
        .collect()
}

impl FromStr for Question {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bad = || format!("this is no question: {line}");
        let number = |i: usize| words.get(i).and_then(|w| w.parse().ok()).ok_or_else(bad);
        match words.first() {
            None => Err(bad()),
            Some(&"write") => {
                let mut rest = words.get(5..).unwrap_or_default();
                let fua = rest.first() == Some(&"fua");
                if fua {
                    rest = &rest[1..];
                }
                Ok(Self::Write {
                    disk: words.get(1).ok_or_else(bad)?.to_string(),
                    offset: number(2)?,
                    len: number(3)? as usize,
                    seed: number(4)? as u32,
                    fua,
                    cuts: match rest {
                        [] => Vec::new(),
                        [text] => cuts(text).ok_or_else(bad)?,
                        _ => return Err(bad()),
                    },
                })
            }
            Some(&"read") => Ok(Self::Read {
                disk: words.get(1).ok_or_else(bad)?.to_string(),
                offset: number(2)?,
                len: number(3)? as usize,
                cuts: match words.get(4..).unwrap_or_default() {
                    [] => Vec::new(),
                    [text] => cuts(text).ok_or_else(bad)?,
                    _ => return Err(bad()),
                },
            }),
            Some(&"together") => {
                let by = words.get(1).and_then(|word| By::from_word(word));
                let by = by.ok_or_else(bad)?;
                let parts: Result<Vec<Self>, String> = words[2..]
                    .iter()
                    .map(|part| part.replace('/', " ").parse())
                    .collect();
                match parts {
                    Ok(parts) if parts.iter().all(Self::is_transfer) => {
                        Ok(Self::Together { by, parts })
                    }
                    _ => Err(bad()),
                }
            }
            Some(_) => Ok(Self::words(&words)),
        }
    }
}

fn show_cuts(f: &mut fmt::Formatter<'_>, cuts: &Cuts) -> fmt::Result {
    for (i, (skip, len)) in cuts.iter().enumerate() {
        write!(f, "{}{skip}:{len}", if i == 0 { " cut=" } else { "," })?;
    }
    Ok(())
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => write!(f, "{}", words.join(" ")),
            Self::Write {
                disk,
                offset,
                len,
                seed,
                fua,
                cuts,
            } => {
                let fua = if *fua { " fua" } else { "" };
                write!(f, "write {disk} {offset} {len} {seed}{fua}")?;
                show_cuts(f, cuts)
            }
            Self::Read {
                disk,
                offset,
                len,
                cuts,
            } => {
                write!(f, "read {disk} {offset} {len}")?;
                show_cuts(f, cuts)
            }
            Self::Together { by, parts } => {
                write!(f, "together {}", by.word())?;
                parts
                    .iter()
                    .try_for_each(|part| write!(f, " {}", part.to_string().replace(' ', "/")))
            }
        }
    }
}

/// The text that stands for itself with `\s`, `\t`, `\n` in it.
pub fn unescape(text: &str) -> String {
    text.replace("\\s", " ")
        .replace("\\t", "\t")
        .replace("\\n", "\n")
        .replace("\\e", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_as_they_are_written() {
        for line in [
            "put a/size 5\\n",
            "write a 512 1024 7",
            "write a 0 4096 7 fua cut=2:10,0:512",
            "read a 0 512",
            "read a 0 512 cut=2:10",
            "together aio write/a/0/512/7 read/b/512/1024/cut=2:10,0:512",
            "together polled write/a/0/512/7/fua",
            "together late read/a/0/512",
        ] {
            assert_eq!(line.parse::<Question>().unwrap().to_string(), line);
        }
        assert!("write a b c".parse::<Question>().is_err());
        assert!("read a 0 512 cut=1".parse::<Question>().is_err());
        assert!("".parse::<Question>().is_err());
        assert!("together ring flush/a".parse::<Question>().is_err());
    }

    #[test]
    fn needs_are_seen() {
        let needs = |line: &str| line.parse::<Question>().unwrap().needs();
        assert_eq!(needs("put a/size 5"), [(false, "size".into())]);
        assert_eq!(needs("load gb=1"), [(true, "gb".into())]);
        assert_eq!(needs("load zoned"), [(true, "zoned".into())]);
        assert_eq!(needs("device a discard=1"), [(false, "discard".into())]);
        assert_eq!(needs("discard a 0 512"), []);
    }
}
