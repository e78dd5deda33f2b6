// SPDX-License-Identifier: GPL-2.0

//! The files below `rust/` in the order of their paths.

use crate::world::{Source, World};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

/// Its headings are names of what our comments rely on in C, or in the kernel crate.
const CONTRACTS: &str = "scripts/new-base.d/contracts.toml";

/// What builds leave behind.
const NOT_OURS: [&str; 3] = ["generated", "target", ".tmp_versions"];

/// The paths of all files with this ending below a directory.
fn files(directory: &Path, ending: &str, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        if path.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            files(&path, ending, into)?;
        } else if name.ends_with(ending) && !name.ends_with(".mod.c") {
            into.push(path);
        }
    }
    Ok(())
}

fn text_of(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the tree.
pub fn read(top: &Path) -> Result<World, String> {
    let (mut rust, mut c) = (Vec::new(), Vec::new());
    files(&top.join("rust"), ".rs", &mut rust)?;
    files(&top.join("rust"), ".c", &mut c)?;
    rust.sort();
    let mut sources = Vec::new();
    for path in rust {
        let name = path
            .strip_prefix(top)
            .expect("below the top")
            .to_string_lossy()
            .to_string();
        sources.push(Source::read(&name, &text_of(&path)?)?);
    }
    let mut names = HashSet::new();
    let mut add = |text: &str| {
        names.extend(
            text.split(|c: char| !c.is_alphanumeric() && c != '_')
                .map(str::to_string),
        )
    };
    for path in c {
        add(&text_of(&path)?);
    }
    text_of(&top.join(CONTRACTS))?
        .lines()
        .filter(|line| line.starts_with('['))
        .for_each(add);
    Ok(World::new(sources, names))
}
