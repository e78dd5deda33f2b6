// SPDX-License-Identifier: GPL-2.0

//! Gives commands to one driver.

use crate::{
    command::{unescape, Answer, Command},
    driver::Driver,
    log::Log,
    sysfs,
    system::{self, verdict},
    transfer::{self, open_disk, Piece},
    watchdog, zones,
};
use nix::{
    kmod::{delete_module, finit_module, DeleteModuleFlags, ModuleInitFlags},
    request_code_none,
};
use std::{
    collections::HashMap,
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{symlink, FileExt},
    },
    path::{Path, PathBuf},
    process,
    sync::Mutex,
    thread::sleep,
    time::{Duration, Instant},
};

nix::ioctl_none!(blkrrpart, 0x12, 95);
nix::ioctl_write_ptr_bad!(blkdiscard, request_code_none!(0x12, 119), [u64; 2]);
nix::ioctl_write_ptr_bad!(blksecdiscard, request_code_none!(0x12, 125), [u64; 2]);
nix::ioctl_write_ptr_bad!(blkzeroout, request_code_none!(0x12, 127), [u64; 2]);

/// Held while a module is loaded or unloaded: null_blk gives its major number away before its
/// disks are gone, and a driver that gets it then cannot make disks.
static LOADING: Mutex<()> = Mutex::new(());

/// The client of one driver.
pub struct Client {
    pub driver: Driver,
    /// The attributes and parameters that are shown.
    pub attributes: Vec<String>,
    pub parameters: Vec<String>,
    module: PathBuf,
    log: Log,
    open: HashMap<String, File>,
}

impl Client {
    /// Loads a driver without devices; shows all its attributes and parameters.
    pub fn new(driver: Driver) -> Result<Self, String> {
        let mut client = Self {
            driver,
            attributes: Vec::new(),
            parameters: Vec::new(),
            module: find_module(driver.module),
            log: Log::new(driver),
            open: HashMap::new(),
        };
        match &*client.load("nr_devices=0") {
            "ok" => {}
            error => return Err(format!("{} cannot be loaded: {error}", driver.name)),
        }
        let features = system::read(&driver.path("features"));
        client.attributes = features.split(',').map(String::from).collect();
        client.parameters = system::names(&driver.parameters());
        Ok(client)
    }

    /// Removes all that commands have made, so that the driver is as after loading.
    pub fn reset(&mut self) {
        watchdog::reset(self.driver.name);
        self.open.clear();
        let subsystem = self.driver.subsystem();
        for name in system::names(&subsystem) {
            let _ = fs::remove_dir(subsystem.join(name));
        }
        self.log.clear();
    }

    /// Executes a command; answers once for each transfer.
    pub fn execute(&mut self, command: &Command) -> Vec<Answer> {
        watchdog::command(self.driver.name, command.to_string());
        let Command::Words(words) = command else {
            let node = |disk: &str| self.node(disk);
            return transfer::run(command.transfers(), command.engine(), node);
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        vec![Answer {
            text: self.words(&words),
            bytes: Vec::new(),
        }]
    }

    fn node(&self, disk: &str) -> PathBuf {
        Path::new("/dev").join(self.driver.own_name(disk))
    }

    fn words(&mut self, words: &[&str]) -> String {
        let driver = self.driver;
        let path = |path: &str| driver.path(path);
        match *words {
            ["load", ref parameters @ ..] => self.load(&parameters.join(" ")),
            ["unload"] => self.unload(),
            ["try-unload"] => self.try_unload(),
            ["parameters"] => join(&self.parameters, |name| {
                let path = driver.parameters().join(name);
                format!("{name}={}:{}", system::read(&path), system::mode(&path))
            }),
            ["types"] => self.types(),
            ["attributes", name] => join(&self.attributes, |attribute| {
                let text = system::read(&path(name).join(attribute));
                format!("{attribute}={}", text.replace(' ', ","))
            }),
            ["features"] => {
                let all = system::read(&path("features"));
                let known = |name: &&str| self.attributes.iter().any(|a| a == name);
                all.split(',').filter(known).collect::<Vec<_>>().join(",")
            }
            ["disk", name] => sysfs::disk(&driver.own_name(name)),
            ["counts", name] => sysfs::counts(&driver.sysfs(name)),
            ["log", ref text @ ..] => self.log.count(&text.join(" ")),
            ["files", name] => {
                let files = system::names(&path(name));
                join(&files, |file| {
                    format!("{file}:{}", system::mode(&path(name).join(file)))
                })
            }
            ["disks"] => self.names("/sys/block").join(" "),
            ["traces"] => self.traces(),
            ["mkdir", name] => verdict(fs::create_dir(path(name))),
            ["rmdir", name] => verdict(fs::remove_dir(path(name))),
            ["rename", from, to] => verdict(fs::rename(path(from), path(to))),
            ["link", from, to] => verdict(symlink(path(from), path(to))),
            ["set", file, text] => set(&path(file), text),
            ["get", file] => system::read(&path(file)),
            ["mode", file] => system::mode(&path(file)),
            ["open", file, mode] => {
                let mut options = OpenOptions::new();
                options.read(mode.contains('r')).write(mode.contains('w'));
                verdict(options.open(path(file)))
            }
            ["device", name, ref settings @ ..] => self.device(name, settings),
            ["sysfs", name, file, text] => set(&driver.sysfs(name).join(file), text),
            [operation @ ("discard" | "zero" | "secure-erase"), name, offset, len] => {
                verdict(self.erase(operation, name, offset, len))
            }
            [verb @ ("report-zones" | "report-cached"), name, offset, count] => {
                let disk = open_disk(&self.node(name), false);
                let zones = |disk| zones::report(&disk, verb, number(offset), number(count));
                let shown = disk.and_then(zones);
                shown.unwrap_or_else(|why| system::error_name(&why))
            }
            [verb, name, offset, len] if verb.ends_with("-zones") => {
                let disk = open_disk(&self.node(name), false);
                let change = |disk| zones::change(&disk, verb, number(offset), number(len));
                verdict(disk.and_then(change))
            }
            ["flush", name] => {
                verdict(open_disk(&self.node(name), false).and_then(|disk| disk.sync_all()))
            }
            ["partition", name, ref parts @ ..] => verdict(self.partition(name, parts)),
            ["partitions", name] => self.partitions(name),
            ["keep-open", name] => {
                let file = match name.contains('/') {
                    true => OpenOptions::new().read(true).write(true).open(path(name)),
                    false => File::open(self.node(name)),
                };
                verdict(file.map(|file| self.open.insert(name.into(), file)))
            }
            ["reread", file] => self.open.get(file).map_or("not open".into(), |mut file| {
                let mut bytes = [0; 64];
                match file.read(&mut bytes) {
                    Ok(len) => String::from_utf8_lossy(&bytes[..len]).trim().into(),
                    error => verdict(error),
                }
            }),
            ["rewrite", file, text] => self.open.get(file).map_or("not open".into(), |mut file| {
                verdict(file.write(unescape(text).as_bytes()))
            }),
            ["close", name] => match self.open.remove(name) {
                Some(_) => "ok".into(),
                None => "not open".into(),
            },
            ["timed", least, most, ref command @ ..] => self.timed(least, most, command),
            _ => format!("unknown command: {}", words.join(" ")),
        }
    }

    fn timed(&mut self, least: &str, most: &str, command: &[&str]) -> String {
        let limit = |text: &str| Duration::from_millis(text.parse().unwrap_or(0));
        let begin = Instant::now();
        let answer = match command.join(" ").parse::<Command>() {
            Ok(command) => command.describe(&self.execute(&command)),
            Err(why) => why,
        };
        match begin.elapsed() {
            time if (limit(least)..=limit(most)).contains(&time) => format!("{answer} in time"),
            time => format!("{answer} in {time:?}"),
        }
    }

    fn erase(&self, operation: &str, name: &str, offset: &str, len: &str) -> io::Result<i32> {
        let call = match operation {
            "discard" => blkdiscard,
            "zero" => blkzeroout,
            _ => blksecdiscard,
        };
        let range = [offset, len].map(|number| number.parse().expect("a number"));
        let disk = open_disk(&self.node(name), false)?;
        // SAFETY: These requests read two numbers.
        Ok(unsafe { call(disk.as_raw_fd(), &range) }?)
    }

    fn load(&mut self, parameters: &str) -> String {
        self.reset();
        if self.is_loaded() {
            self.unload();
        }
        let _alone = LOADING.lock();
        verdict(File::open(&self.module).and_then(|module| {
            let parameters = CString::new(unescape(parameters))?;
            Ok(finit_module(module, &parameters, ModuleInitFlags::empty())?)
        }))
    }

    fn is_loaded(&self) -> bool {
        Path::new("/sys/module").join(self.driver.module).exists()
    }

    fn try_unload(&self) -> String {
        let _alone = LOADING.lock();
        let name = CString::new(self.driver.module).expect("a name without NUL");
        verdict(delete_module(&name, DeleteModuleFlags::O_NONBLOCK))
    }

    /// Unloads the module; waits for a reference that is about to be dropped.
    fn unload(&self) -> String {
        for _ in 0..200 {
            match self.try_unload() {
                answer if answer != "EAGAIN" && answer != "EBUSY" => return answer,
                _ => sleep(Duration::from_millis(10)),
            }
        }
        self.try_unload()
    }

    /// The types of the parameters, as modinfo shows them.
    fn types(&self) -> String {
        let module = fs::read(&self.module).unwrap_or_default();
        let strings = module.split(|byte| *byte == 0);
        let mut types: Vec<_> = strings
            .filter_map(|text| std::str::from_utf8(text).ok()?.strip_prefix("parmtype="))
            .filter(|text| {
                self.parameters
                    .iter()
                    .any(|name| text.split(':').next() == Some(name))
            })
            .collect();
        types.sort();
        types.join(" ")
    }

    fn device(&mut self, name: &str, settings: &[&str]) -> String {
        let directory = self.driver.path(name);
        let mut verdicts = Vec::new();
        if !directory.exists() {
            verdicts.push(verdict(fs::create_dir(&directory)));
        }
        for setting in settings.iter().chain([&"power=1"]) {
            let (attribute, text) = setting.split_once('=').unwrap_or((setting, ""));
            let written = system::write(&directory.join(attribute), &unescape(text));
            verdicts.push(verdict(written));
        }
        verdicts.join(" ")
    }

    /// The names in a directory that are the driver's, as commands have them.
    fn names(&self, directory: &str) -> Vec<String> {
        let names = system::names(Path::new(directory));
        let names = names
            .iter()
            .filter_map(|name| self.driver.common_name(name));
        names.collect()
    }

    fn traces(&self) -> String {
        let mut traces = self.names("/sys/block");
        traces.extend(self.names("/dev").iter().map(|name| format!("/dev/{name}")));
        let devices = system::read(Path::new("/proc/devices"));
        for (trace, found) in [
            (
                "major",
                devices.split(' ').any(|word| word == self.driver.disk),
            ),
            ("subsystem", self.driver.subsystem().exists()),
            ("module", self.is_loaded()),
        ] {
            traces.extend(found.then(|| trace.into()));
        }
        traces.join(" ")
    }

    /// Writes a partition table, each partition `START+SECTORS` in logical blocks.
    fn partition(&self, name: &str, parts: &[&str]) -> io::Result<i32> {
        // As large as the largest block of a disk that is partitioned.
        let mut table = [0; 4096];
        table[510..512].copy_from_slice(&[0x55, 0xaa]);
        for (entry, part) in table[446..510].chunks_exact_mut(16).zip(parts) {
            let (start, len) = part.split_once('+').expect("START+SECTORS");
            // The type for Linux.
            entry[4] = 0x83;
            for (field, text) in [(8..12, start), (12..16, len)] {
                let number: u32 = text.parse().expect("a number");
                entry[field].copy_from_slice(&number.to_le_bytes());
            }
        }
        let disk = open_disk(&self.node(name), false)?;
        disk.write_at(Piece::new(0, &table).bytes(), 0)?;
        // SAFETY: This request has no argument.
        Ok(unsafe { blkrrpart(disk.as_raw_fd()) }?)
    }

    /// The partitions that the kernel knows of a disk, in sectors of 512 bytes.
    fn partitions(&self, name: &str) -> String {
        let disk = self.driver.sysfs(name);
        let mut found = system::names(&disk);
        found.retain(|entry| disk.join(entry).join("partition").exists());
        join(&found, |entry| {
            let name = self
                .driver
                .common_name(entry)
                .unwrap_or_else(|| entry.into());
            let number = |file| system::read(&disk.join(entry).join(file));
            format!("{name}={}+{}", number("start"), number("size"))
        })
    }
}

/// A number of a command.
fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Shows all, with a blank between them.
fn join(all: &[String], show: impl Fn(&String) -> String) -> String {
    all.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Writes a file; the verdict, and what is read then.
fn set(path: &Path, text: &str) -> String {
    let written = verdict(system::write(path, &unescape(text)));
    format!("{written} {}", system::read(path))
}

/// The file of a module, or an empty path.
fn find_module(name: &str) -> PathBuf {
    let mut find = process::Command::new("find");
    let output = find
        .args(["/lib/modules", "-name", &format!("{name}.ko")])
        .output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output)
        .lines()
        .next()
        .unwrap_or_default()
        .into()
}
