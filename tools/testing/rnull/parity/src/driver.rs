// SPDX-License-Identifier: GPL-2.0

//! The names by which a driver is known.

use std::path::PathBuf;

/// One of the two drivers; only the names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// What reports call it.
    pub name: &'static str,
    /// Its module.
    pub module: &'static str,
    /// The block major, also the beginning of the names of disks made by parameters.
    pub disk: &'static str,
    /// Stands before the names of directories, for a directory names a disk, of which there can
    /// be only one with that name.
    pub prefix: &'static str,
    tree: &'static str,
}

/// The driver in C.
pub const NULL_BLK: Driver = Driver {
    name: "null_blk",
    module: "null_blk",
    disk: "nullb",
    prefix: "c-",
    tree: "nullb",
};

/// The driver in Rust.
pub const RNULL: Driver = Driver {
    name: "rnull",
    module: "rnull_mod",
    disk: "rnullb",
    prefix: "r-",
    tree: "rnull",
};

impl Driver {
    /// The directory in configfs.
    pub fn tree(&self) -> PathBuf {
        PathBuf::from("/sys/kernel/config").join(self.tree)
    }

    /// The name for `name` of a question: `DISK0` is the first disk made by parameters.
    pub fn own(&self, name: &str) -> String {
        match name.strip_prefix("DISK") {
            Some(number) => format!("{}{number}", self.disk),
            None if matches!(name, "." | "features") => name.into(),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// A path below the tree, whose first part is a name.
    pub fn path(&self, path: &str) -> PathBuf {
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let directory = self.tree().join(self.own(name));
        if rest.is_empty() {
            directory
        } else {
            directory.join(rest)
        }
    }

    /// The name in a question for a name in the system, if it is this driver's.
    pub fn asked(&self, own: &str) -> Option<String> {
        if let Some(name) = own.strip_prefix(self.prefix) {
            return Some(name.into());
        }
        own.strip_prefix(self.disk).map(|n| format!("DISK{n}"))
    }

    /// The attribute of the module's parameter `name`.
    pub fn parameter(&self, name: &str) -> PathBuf {
        PathBuf::from("/sys/module")
            .join(self.module)
            .join("parameters")
            .join(name)
    }
}
