// SPDX-License-Identifier: GPL-2.0

//! What sysfs shows of a disk.

use crate::system;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// What is never the same twice.
const CHANGING: [&str; 1] = ["io_poll_delay"];

/// Everything, as words `file=text` in a fixed order.
pub fn disk(name: &str) -> String {
    let disk = Path::new("/sys/block").join(name);
    if !disk.is_dir() {
        return "no disk".into();
    }
    let mut words = Vec::new();
    for file in files(&disk.join("queue")) {
        let known = file.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if !CHANGING.contains(&known) {
            words.push(word(&file, "queue/"));
        }
    }
    for name in [
        "size",
        "range",
        "ext_range",
        "removable",
        "ro",
        "hidden",
        "capability",
        "alignment_offset",
        "discard_alignment",
        "partscan",
        "zoned",
    ] {
        words.push(word(&disk.join(name), ""));
    }
    words.push(format!("node={}", mode_of_node(name)));
    let queues = entries(&disk.join("mq"));
    words.push(format!("queues={}", queues.len()));
    for queue in queues {
        let number = queue.file_name().and_then(|n| n.to_str()).unwrap_or("?");
        let prefix = format!("mq{number}/");
        for file in ["nr_tags", "nr_reserved_tags", "cpu_list"] {
            words.push(word(&queue.join(file), &prefix));
        }
    }
    words.join(" ")
}

fn word(file: &Path, prefix: &str) -> String {
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or("?");
    format!("{prefix}{name}={}", system::get(file).replace(' ', ","))
}

fn mode_of_node(name: &str) -> String {
    system::mode(&Path::new("/dev").join(name))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .map(|all| all.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    // By number where names are numbers.
    entries.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_owned();
        let number: Option<u32> = name.to_str().and_then(|n| n.parse().ok());
        (number, name)
    });
    entries
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = entries(directory);
    files.retain(|path| path.is_file());
    files
}
