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
    // The number of the disk; the major is another for each driver.
    let device = system::get(&disk.join("dev"));
    let minor = device.split(':').next_back().unwrap_or("?");
    words.push(format!("minor={minor}"));
    words.push(format!("files={}", names(&disk).join(",")));
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

/// How many transfers there were of which kind, in how many sectors: words `kind=transfers/sectors`.
pub fn counts(name: &str) -> String {
    let disk = Path::new("/sys/block").join(name);
    // A transfer is counted after its sender is told of its end. To set a limit anew, even to what
    // it is, waits until all are through.
    let limit = disk.join("queue/iostats");
    let _ = system::put(&limit, &system::get(&limit));
    let text = system::get(&disk.join("stat"));
    let fields: Vec<&str> = text.split_whitespace().collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or("?");
    let kind = |kind, at| format!("{kind}={}/{}", field(at), field(at + 2));
    let kinds = [("reads", 0), ("writes", 4), ("discards", 11)].map(|(name, at)| kind(name, at));
    format!("{} flushes={}", kinds.join(" "), field(15))
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

fn names(directory: &Path) -> Vec<String> {
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_string());
    entries(directory).into_iter().filter_map(name).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = entries(directory);
    files.retain(|path| path.is_file());
    files
}
