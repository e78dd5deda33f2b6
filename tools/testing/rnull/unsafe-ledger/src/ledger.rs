// SPDX-License-Identifier: GPL-2.0

//! The ledger as text.

use crate::{
    operation::Kind,
    world::{Entry, World},
};
use std::{collections::BTreeMap, fmt::Write};

const WIDTH: usize = 100;

// In two parts, for it is not the licence of this file.
const LICENCE: &str = concat!("# SP", "DX-License-", "Identifier: GPL-2.0\n#\n");
const HEAD: &str = "\
# Each unsafe operation below rust/, with what the comment on it cites, and what that comment says. It is written by
# scripts/unsafe-ledger --record, and read in review: an entry that is new here is new unsafe code.
#
#   == file
#   item
#     kind: operation; arguments of calls are left out where they do nothing unsafe
#       by what the comment cites, which is there
#       \"what the comment says\"
";

/// An entry of the text: what identifies it, then its other lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    pub path: String,
    pub item: String,
    pub operation: String,
    pub reason: Vec<String>,
}

fn wrapped(text: &str, indent: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
}

impl From<&Entry> for Row {
    fn from(entry: &Entry) -> Self {
        let mut reason: Vec<String> = entry
            .cites
            .iter()
            .map(|cited| format!("by {cited}"))
            .collect();
        wrapped(&format!("\"{}\"", entry.reason), 4, &mut reason);
        let operation = entry.operation.to_string();
        Self {
            path: entry.path.clone(),
            item: entry.item.clone(),
            operation,
            reason,
        }
    }
}

/// The totals, which close the text.
fn totals(world: &World, entries: &[Entry]) -> String {
    let mut text = format!("\n== totals\n\n{} entries, in which are\n", entries.len());
    let kinds: Vec<Kind> = entries
        .iter()
        .flat_map(|entry| entry.operation.kinds.iter().copied())
        .collect();
    for kind in Kind::ALL {
        let count = kinds.iter().filter(|other| **other == kind).count();
        if count > 0 {
            writeln!(text, "{count:5} {}", kind.plural()).unwrap();
        }
    }
    let citing = entries
        .iter()
        .filter(|entry| !entry.cites.is_empty())
        .count();
    writeln!(
        text,
        "{citing} cite what is written elsewhere, {} give a reason of their own.",
        entries.len() - citing
    )
    .unwrap();
    writeln!(
        text,
        "{} functions or traits are unsafe, with a section # Safety.",
        world.obligations()
    )
    .unwrap();
    text
}

/// The whole text.
pub fn write(world: &World, entries: &[Entry]) -> String {
    let mut text = format!("{LICENCE}{HEAD}");
    let (mut path, mut item) = ("", "");
    for (entry, row) in entries.iter().zip(entries.iter().map(Row::from)) {
        if entry.path != path {
            (path, item) = (&entry.path, "");
            write!(text, "\n== {path}\n").unwrap();
        }
        if entry.item != item {
            item = &entry.item;
            write!(text, "\n{item}\n").unwrap();
        }
        writeln!(text, "  {}", row.operation).unwrap();
        for line in row.reason {
            writeln!(text, "    {line}").unwrap();
        }
    }
    text + &totals(world, entries)
}

/// The entries of a text.
pub fn read(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut path, mut item) = (String::new(), String::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(reason) = line.strip_prefix("    ") {
            if let Some(row) = rows.last_mut() {
                row.reason.push(reason.to_string());
            }
        } else if let Some(operation) = line.strip_prefix("  ") {
            let (path, item, operation) = (path.clone(), item.clone(), operation.to_string());
            rows.push(Row {
                path,
                item,
                operation,
                reason: Vec::new(),
            });
        } else if let Some(name) = line.strip_prefix("== ") {
            if name == "totals" {
                break;
            }
            path = name.to_string();
        } else if !line.is_empty() {
            item = line.to_string();
        }
    }
    rows
}

/// What a committed text lacks, or has too much, compared with the code.
pub fn compare(committed: &str, entries: &[(Entry, usize)]) -> Vec<String> {
    let mut left: BTreeMap<(String, String, String), Vec<Row>> = BTreeMap::new();
    let key = |row: &Row| (row.path.clone(), row.item.clone(), row.operation.clone());
    for row in read(committed) {
        left.entry(key(&row)).or_default().push(row);
    }
    let (mut unmatched, mut faults) = (Vec::new(), Vec::new());
    for (entry, line) in entries {
        let row = Row::from(entry);
        let rows = left.entry(key(&row)).or_default();
        match rows.iter().position(|other| *other == row) {
            Some(i) => drop(rows.remove(i)),
            None => unmatched.push((row, line)),
        }
    }
    for (row, line) in unmatched {
        let what = format!("{}:{line}: {}: {}", row.path, row.item, row.operation);
        match left.get_mut(&key(&row)).and_then(Vec::pop) {
            Some(old) => faults.push(format!(
                "{what}: the ledger has another reason: {} -- the code says: {}",
                old.reason.join(" "),
                row.reason.join(" ")
            )),
            None => faults.push(format!("{what}: not in the ledger")),
        }
    }
    for row in left.into_values().flatten() {
        faults.push(format!(
            "{}: {}: {}: in the ledger, but not in the code",
            row.path, row.item, row.operation
        ));
    }
    faults
}
