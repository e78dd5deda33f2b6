// SPDX-License-Identifier: GPL-2.0

//! The messages of a driver in the kernel log.

use crate::driver::Driver;
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
};

/// The messages of one driver since a point in time.
pub struct Log {
    driver: Driver,
    file: io::Result<File>,
    messages: Vec<String>,
}

impl Log {
    /// Starts with what is logged from now on.
    pub fn new(driver: Driver) -> Self {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut log = Self {
            driver,
            file: options.open("/dev/kmsg"),
            messages: Vec::new(),
        };
        log.clear();
        log
    }

    /// Starts again.
    pub fn clear(&mut self) {
        if let Ok(file) = &mut self.file {
            let _ = file.seek(SeekFrom::End(0));
        }
        self.messages.clear();
    }

    /// How many messages contain a text, in which disks have their names of commands.
    pub fn count(&mut self, text: &str) -> String {
        let file = match &mut self.file {
            Ok(file) => file,
            Err(why) => return format!("the log cannot be opened: {why}"),
        };
        let mut record = [0; 8192];
        loop {
            match file.read(&mut record) {
                Ok(len) => {
                    let record = String::from_utf8_lossy(&record[..len]);
                    self.messages.extend(message(self.driver, &record));
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                // Older messages were overwritten; the next read returns the oldest that is left.
                Err(why) if why.raw_os_error() == Some(libc::EPIPE) => {}
                Err(why) => return format!("the log cannot be read: {why}"),
            }
        }
        let matching = self.messages.iter().filter(|line| line.contains(text));
        matching.count().to_string()
    }
}

/// The text of a record, if it is the driver's: `6,123,456,-;rnull_mod: disk r-a created` has
/// `disk a created`.
fn message(driver: Driver, record: &str) -> Option<String> {
    let (_, text) = record.lines().next()?.split_once(';')?;
    let text = text.strip_prefix(driver.module)?.strip_prefix(": ")?;
    let common = |word: &str| driver.common_name(word).unwrap_or_else(|| word.into());
    Some(text.split(' ').map(common).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{NULL_BLK, RNULL};

    #[test]
    fn a_message_belongs_to_one_driver() {
        let record = "6,12,34,-;rnull_mod: disk r-a created\n SUBSYSTEM=block\n";
        assert_eq!(message(RNULL, record).unwrap(), "disk a created");
        assert_eq!(message(NULL_BLK, record), None);
        let record = "6,12,34,-;null_blk: disk nullb0 created\n";
        assert_eq!(message(NULL_BLK, record).unwrap(), "disk DISK0 created");
    }
}
