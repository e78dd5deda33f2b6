// SPDX-License-Identifier: GPL-2.0

//! What a driver has said in the kernel log.

use crate::driver::Driver;
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
};

/// The messages of one driver.
pub struct Log {
    driver: Driver,
    /// Missing where the kernel does not show it.
    file: Option<File>,
    messages: Vec<String>,
}

impl Log {
    /// Begins to listen.
    pub fn new(driver: Driver) -> Self {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut log = Self {
            driver,
            file: file.open("/dev/kmsg").ok(),
            messages: Vec::new(),
        };
        log.forget();
        log
    }

    /// Forgets what was said so far.
    pub fn forget(&mut self) {
        if let Some(file) = &mut self.file {
            let _ = file.seek(SeekFrom::End(0));
        }
        self.messages.clear();
    }

    /// How many messages since then have a text in them; disks have their names of questions.
    pub fn count(&mut self, text: &str) -> String {
        match self.listen() {
            Ok(()) => {
                let said = self.messages.iter().filter(|said| said.contains(text));
                said.count().to_string()
            }
            Err(why) => format!("the log cannot be read: {why}"),
        }
    }

    /// Reads to the end of the log.
    fn listen(&mut self) -> io::Result<()> {
        let mut record = vec![0; 8192];
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        loop {
            match file.read(&mut record) {
                Ok(0) => return Ok(()),
                Ok(len) => {
                    let message = own_words(self.driver, &String::from_utf8_lossy(&record[..len]));
                    self.messages.extend(message);
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Older messages were overwritten, which goes on with those that are there.
                Err(why) if why.raw_os_error() == Some(libc::EPIPE) => {}
                Err(why) => return Err(why),
            }
        }
    }
}

/// What a record says, if it is the driver's: `6,123,456,-;rnull_mod: disk r-a created` says
/// `disk a created`.
fn own_words(driver: Driver, record: &str) -> Option<String> {
    let (_, text) = record.lines().next()?.split_once(';')?;
    let text = text.strip_prefix(driver.module)?.strip_prefix(": ")?;
    let asked = |word: &str| driver.asked(word).unwrap_or_else(|| word.into());
    let words: Vec<String> = text.split(' ').map(asked).collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{NULL_BLK, RNULL};

    #[test]
    fn own_words_are_known() {
        let said = |driver, record| own_words(driver, record);
        let record = "6,12,34,-;rnull_mod: disk r-a created\n SUBSYSTEM=block\n";
        assert_eq!(said(RNULL, record).as_deref(), Some("disk a created"));
        assert_eq!(said(NULL_BLK, record), None);
        let record = "6,12,34,-;null_blk: disk nullb0 created\n";
        assert_eq!(
            said(NULL_BLK, record).as_deref(),
            Some("disk DISK0 created")
        );
    }
}
