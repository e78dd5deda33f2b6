// SPDX-License-Identifier: GPL-2.0

//! Looks at the files of a device: which there are, what becomes of those that are open.

use super::Asker;
use crate::{
    question::unescape,
    system::{self, verdict},
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
};

impl Asker {
    /// The files with their modes, in the order of their names; but those that not both drivers have.
    pub(super) fn files(&self, name: &str) -> String {
        let directory = self.driver.path(name);
        let mut files: Vec<String> = fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|file| !file.starts_with("zone"))
            .map(|file| format!("{file}:{}", system::mode(&directory.join(&file))))
            .collect();
        files.sort();
        files.join(" ")
    }

    /// Opens a disk, or the file of a device, and keeps it open.
    pub(super) fn hold(&mut self, path: &str) -> String {
        let file = match path.contains('/') {
            true => OpenOptions::new()
                .read(true)
                .write(true)
                .open(self.driver.path(path)),
            false => File::open(self.node(path)),
        };
        let said = verdict(&file);
        if let Ok(file) = file {
            self.held.insert(path.into(), file);
        }
        said
    }

    /// What an open file says, if it was not read before, or to a text.
    pub(super) fn held(&mut self, path: &str, text: &[&str]) -> String {
        let Some(file) = self.held.get_mut(path) else {
            return "not held".into();
        };
        let done: io::Result<String> = match text {
            [] => {
                let mut bytes = [0; 64];
                file.read(&mut bytes)
                    .map(|len| String::from_utf8_lossy(&bytes[..len]).trim().into())
            }
            _ => file
                .write(unescape(&text.join(" ")).as_bytes())
                .map(|_| "ok".into()),
        };
        match done {
            Ok(said) => said,
            failed => verdict(&failed),
        }
    }

    pub(super) fn drop_held(&mut self, path: &str) -> String {
        match self.held.remove(path) {
            Some(_) => "ok".into(),
            None => "not held".into(),
        }
    }
}
