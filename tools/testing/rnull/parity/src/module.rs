// SPDX-License-Identifier: GPL-2.0

//! A kernel module, loaded or not.

use crate::system::{self, verdict};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread::sleep,
    time::Duration,
};

/// Held while a module comes or goes: null_blk gives its major number away before its disks are
/// gone, and who gets it then cannot make disks.
static LOADING: Mutex<()> = Mutex::new(());

/// A module by its name.
pub struct Module {
    name: &'static str,
    file: PathBuf,
}

impl Module {
    /// Looks for a module among those of the kernel.
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            file: find(name),
        }
    }

    pub fn is_loaded(&self) -> bool {
        Path::new("/sys/module").join(self.name).exists()
    }

    pub fn load(&self, parameters: &str) -> String {
        let _alone = LOADING.lock();
        verdict(&system::load(&self.file, parameters))
    }

    pub fn unload_now(&self) -> String {
        let _alone = LOADING.lock();
        verdict(&system::unload(self.name))
    }

    /// Unloads the module; a reference that is just being dropped is waited for.
    pub fn unload(&self) -> String {
        let mut said = String::new();
        for _ in 0..200 {
            said = self.unload_now();
            if said != "EAGAIN" && said != "EBUSY" {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        said
    }

    /// What modinfo says of some parameters.
    pub fn types(&self, parameters: &[String]) -> String {
        let module = fs::read(&self.file).unwrap_or_default();
        let mut types: Vec<_> = module
            .split(|byte| *byte == 0)
            .filter_map(|text| std::str::from_utf8(text).ok()?.strip_prefix("parmtype="))
            .filter(|text| {
                let name = text.split(':').next();
                parameters.iter().any(|known| name == Some(known))
            })
            .collect();
        types.sort();
        types.join(" ")
    }
}

/// Where a module lies, or nowhere.
fn find(name: &str) -> PathBuf {
    let mut directories = vec![PathBuf::from("/lib/modules")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            } else if path.file_name().and_then(|n| n.to_str()) == Some(&format!("{name}.ko")) {
                return path;
            }
        }
    }
    PathBuf::new()
}
