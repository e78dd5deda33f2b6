// SPDX-License-Identifier: GPL-2.0

//! Divides a disk into partitions.

use super::Asker;
use crate::{
    memory::Buffer,
    system::{self, verdict},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The bytes of the table, as many as the largest block that it is asked for on.
const TABLE: usize = 4096;

impl Asker {
    /// Writes a table of at most four partitions, each `START+SECTORS` in logical blocks, and has
    /// the kernel read it.
    pub(super) fn divide(&mut self, name: &str, parts: &[&str]) -> String {
        let Some(table) = table(parts) else {
            return "no table".into();
        };
        let mut buffer = Buffer::new(TABLE, &[]);
        buffer.fill(&table);
        let written: io::Result<()> = system::open_disk(&self.node(name)).and_then(|disk| {
            buffer.write(&disk, 0, false)?;
            system::read_partitions(&disk)
        });
        verdict(&written)
    }

    /// The partitions that the kernel knows of a disk, in sectors of 512 bytes.
    pub(super) fn partitions(&self, name: &str) -> String {
        let disk = Path::new("/sys/block").join(self.driver.own(name));
        let mut found: Vec<PathBuf> = fs::read_dir(disk)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join("partition").exists())
            .collect();
        found.sort();
        let show = |path: PathBuf| {
            let name = self.driver.asked(path.file_name()?.to_str()?)?;
            let number = |file| system::get(&path.join(file));
            Some(format!("{name}={}+{}", number("start"), number("size")))
        };
        found
            .into_iter()
            .filter_map(show)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The first block of a disk with such partitions, as the first machines for this bus had it.
fn table(parts: &[&str]) -> Option<Vec<u8>> {
    let mut table = vec![0; TABLE];
    table[510..512].copy_from_slice(&[0x55, 0xaa]);
    let entries = table[446..510].chunks_exact_mut(16);
    if parts.len() > entries.len() {
        return None;
    }
    for (entry, part) in entries.zip(parts) {
        let (start, len) = part.split_once('+')?;
        // Its kind: one for Linux.
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&start.parse::<u32>().ok()?.to_le_bytes());
        entry[12..].copy_from_slice(&len.parse::<u32>().ok()?.to_le_bytes());
    }
    Some(table)
}
