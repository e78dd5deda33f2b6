// SPDX-License-Identifier: GPL-2.0

//! What sysfs shows of a disk.

use crate::system;
use std::path::Path;

/// The files of the disk itself that are shown: what is left changes with every request, or is
/// different for each driver.
const FILES: [&str; 11] = [
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
];

/// All that stays the same while the disk is on, as words `file=text` in a fixed order.
pub fn disk(name: &str) -> String {
    let disk = Path::new("/sys/block").join(name);
    if !disk.is_dir() {
        return "no disk".into();
    }
    let show = |file: &str| {
        let text = system::read(&disk.join(file)).replace(' ', ",");
        format!("{file}={text}")
    };
    let mut limits = system::names(&disk.join("queue"));
    limits.retain(|file| file != "io_poll_delay" && disk.join("queue").join(file).is_file());
    let mut words: Vec<_> = limits
        .iter()
        .map(|file| show(&format!("queue/{file}")))
        .collect();
    let device = system::read(&disk.join("dev"));
    let minor = device.split(':').next_back().unwrap_or("?");
    words.push(format!("minor={minor}"));
    words.push(format!("files={}", system::names(&disk).join(",")));
    words.extend(FILES.map(show));
    words.push(format!(
        "node={}",
        system::mode(&Path::new("/dev").join(name))
    ));
    let queues = system::names(&disk.join("mq"));
    words.push(format!("queues={}", queues.len()));
    for queue in queues {
        let files = ["nr_tags", "nr_reserved_tags", "cpu_list"];
        words.extend(files.map(|file| show(&format!("mq/{queue}/{file}"))));
    }
    words.join(" ")
}

/// How many transfers there were of which kind, in how many sectors: `kind=transfers/sectors`.
pub fn counts(disk: &Path) -> String {
    // A transfer is counted after its submitter is told of its end. A limit that is set, even to
    // what it is, waits until all requests have ended.
    let limit = disk.join("queue/iostats");
    let _ = system::write(&limit, &system::read(&limit));
    let text = system::read(&disk.join("stat"));
    let fields: Vec<&str> = text.split_whitespace().collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or("?");
    let kinds = [("reads", 0), ("writes", 4), ("discards", 11)];
    let kinds = kinds.map(|(kind, at)| format!("{kind}={}/{}", field(at), field(at + 2)));
    format!("{} flushes={}", kinds.join(" "), field(15))
}
