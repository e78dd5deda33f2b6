// SPDX-License-Identifier: GPL-2.0

//! The names by which a driver is known.

use std::path::{Path, PathBuf};

/// One of the two drivers; only the names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The name in reports.
    pub name: &'static str,
    pub module: &'static str,
    /// The block major, also the prefix of the names of disks made by parameters.
    pub disk: &'static str,
    /// The prefix of the directories in configfs: a directory names a disk, and the names of disks
    /// are unique.
    prefix: &'static str,
    subsystem: &'static str,
}

/// The driver in C.
pub const NULL_BLK: Driver = Driver {
    name: "null_blk",
    module: "null_blk",
    disk: "nullb",
    prefix: "c-",
    subsystem: "nullb",
};

/// The driver in Rust.
pub const RNULL: Driver = Driver {
    name: "rnull",
    module: "rnull_mod",
    disk: "rnullb",
    prefix: "r-",
    subsystem: "rnull",
};

impl Driver {
    /// The directory of the subsystem in configfs.
    pub fn subsystem(&self) -> PathBuf {
        Path::new("/sys/kernel/config").join(self.subsystem)
    }

    /// The driver's name for a name in a command: `DISK0` is the first disk made by parameters.
    pub fn own_name(&self, name: &str) -> String {
        match name.strip_prefix("DISK") {
            Some(number) => format!("{}{number}", self.disk),
            None if matches!(name, "." | "features") => name.into(),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// The name in a command for a name of the driver, if it is that.
    pub fn common_name(&self, own: &str) -> Option<String> {
        if let Some(name) = own.strip_prefix(self.prefix) {
            return Some(name.into());
        }
        own.strip_prefix(self.disk).map(|n| format!("DISK{n}"))
    }

    /// A path below the subsystem, whose first component is a name.
    pub fn path(&self, path: &str) -> PathBuf {
        match path.split_once('/') {
            Some((name, rest)) => self.subsystem().join(self.own_name(name)).join(rest),
            None => self.subsystem().join(self.own_name(path)),
        }
    }

    /// The disk in sysfs.
    pub fn sysfs(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(self.own_name(name))
    }

    /// The parameters of the module in sysfs.
    pub fn parameters(&self) -> PathBuf {
        Path::new("/sys/module")
            .join(self.module)
            .join("parameters")
    }
}
