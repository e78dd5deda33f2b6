// SPDX-License-Identifier: GPL-2.0

//! Puts questions to a driver.

mod transfer;

mod file;

mod partitions;

pub use transfer::Transferred;

use crate::{
    driver::Driver,
    log::Log,
    module::Module,
    pattern,
    question::{unescape, Question},
    sysfs,
    system::{self, verdict, Control},
};
use std::{
    collections::HashMap,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Somebody who asks one driver.
pub struct Asker {
    pub driver: Driver,
    /// The attributes and parameters to show: those that both drivers have.
    attributes: Vec<String>,
    parameters: Vec<String>,
    module: Module,
    log: Log,
    held: HashMap<String, File>,
}

impl Asker {
    /// Gets ready to ask about such attributes and parameters.
    pub fn new(driver: Driver, attributes: &[String], parameters: &[String]) -> Self {
        Self {
            driver,
            attributes: attributes.to_vec(),
            parameters: parameters.to_vec(),
            module: Module::named(driver.module),
            log: Log::new(driver),
            held: HashMap::new(),
        }
    }

    /// Takes away all that questions have left, so that the driver is as if just loaded.
    pub fn clean(&mut self) {
        self.held.clear();
        let directories = fs::read_dir(self.driver.tree());
        for entry in directories.into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        self.log.forget();
    }

    /// Asks.
    pub fn ask(&mut self, question: &Question) -> String {
        match question {
            Question::Words(words) => {
                let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
                self.words(&words)
            }
            _ => {
                let said = self.transfer(question);
                let show = |said: &Transferred| match said.bytes.is_empty() {
                    true => said.said.clone(),
                    false => {
                        let what = pattern::describe(said.offset, &said.bytes);
                        format!("{} {what}", said.said)
                    }
                };
                said.iter().map(show).collect::<Vec<_>>().join("; ")
            }
        }
    }

    fn node(&self, disk: &str) -> PathBuf {
        Path::new("/dev").join(self.driver.own(disk))
    }

    fn words(&mut self, words: &[&str]) -> String {
        let driver = self.driver;
        match *words {
            ["load", ref parameters @ ..] => self.load(&parameters.join(" ")),
            ["unload"] => self.module.unload(),
            ["unload-now"] => self.module.unload_now(),
            ["parameters"] => {
                let show = |name: &String| {
                    let path = driver.parameter(name);
                    format!("{name}={}:{}", system::get(&path), system::mode(&path))
                };
                self.parameters
                    .iter()
                    .map(show)
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            ["types"] => self.module.types(&self.parameters),
            ["values", name] => {
                let show = |attribute: &String| {
                    let text = system::get(&driver.path(name).join(attribute));
                    format!("{attribute}={}", text.replace(' ', ","))
                };
                self.attributes
                    .iter()
                    .map(show)
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            ["features"] => {
                let all = system::get(&driver.path("features"));
                let known = |name: &&str| self.attributes.iter().any(|a| a == name);
                all.split(',').filter(known).collect::<Vec<_>>().join(",")
            }
            ["disk", name] => sysfs::disk(&driver.own(name)),
            ["counts", name] => sysfs::counts(&driver.own(name)),
            ["log", ref text @ ..] => self.log.count(&text.join(" ")),
            ["files", name] => self.files(name),
            ["disks"] => self.names("/sys/block").join(" "),
            ["left"] => self.left(),
            ["mkdir", name] => verdict(&fs::create_dir(driver.path(name))),
            ["rmdir", name] => verdict(&fs::remove_dir(driver.path(name))),
            ["rename", from, to] => verdict(&fs::rename(driver.path(from), driver.path(to))),
            ["link", from, to] => verdict(&std::os::unix::fs::symlink(
                driver.path(from),
                driver.path(to),
            )),
            ["put", path, text] => {
                let path = driver.path(path);
                let said = verdict(&system::put(&path, &unescape(text)));
                format!("{said} {}", system::get(&path))
            }
            ["get", path] => system::get(&driver.path(path)),
            ["mode", path] => system::mode(&driver.path(path)),
            ["open", path, how] => {
                let mut options = fs::OpenOptions::new();
                options.read(how.contains('r')).write(how.contains('w'));
                verdict(&options.open(driver.path(path)))
            }
            ["device", name, ref settings @ ..] => self.device(name, settings),
            ["sysfs", name, file, text] => {
                let path = Path::new("/sys/block").join(driver.own(name)).join(file);
                let said = verdict(&system::put(&path, &unescape(text)));
                format!("{said} {}", system::get(&path))
            }
            ["discard", name, offset, len] => self.control(Control::Discard, name, offset, len),
            ["zero", name, offset, len] => self.control(Control::Zero, name, offset, len),
            ["secure-erase", name, offset, len] => {
                self.control(Control::SecureErase, name, offset, len)
            }
            ["flush", name] => {
                let disk = system::open_disk(&self.node(name));
                verdict(&disk.and_then(|disk| disk.sync_all()))
            }
            ["divide", name, ref parts @ ..] => self.divide(name, parts),
            ["partitions", name] => self.partitions(name),
            ["hold", path] => self.hold(path),
            ["held", path, ref text @ ..] => self.held(path, text),
            ["drop", path] => self.drop_held(path),
            ["lasts", least, most, ref rest @ ..] => {
                let limit = |text: &str| Duration::from_millis(text.parse().unwrap_or(0));
                let begin = Instant::now();
                let said = match rest.join(" ").parse() {
                    Ok(question) => self.ask(&question),
                    Err(why) => why,
                };
                let took = begin.elapsed();
                let in_time = (limit(least)..=limit(most)).contains(&took);
                format!(
                    "{said} {}",
                    if in_time {
                        "in time".into()
                    } else {
                        format!("in {took:?}")
                    }
                )
            }
            _ => format!("nobody understands: {}", words.join(" ")),
        }
    }

    fn control(&mut self, what: Control, name: &str, offset: &str, len: &str) -> String {
        let (Ok(offset), Ok(len)) = (offset.parse(), len.parse()) else {
            return "no numbers".into();
        };
        let disk = system::open_disk(&self.node(name));
        verdict(&disk.and_then(|disk| system::control(&disk, what, offset, len)))
    }

    fn load(&mut self, parameters: &str) -> String {
        self.clean();
        if self.module.is_loaded() {
            self.module.unload();
        }
        self.module.load(&unescape(parameters))
    }

    fn device(&mut self, name: &str, settings: &[&str]) -> String {
        let directory = self.driver.path(name);
        let mut said = Vec::new();
        if !directory.exists() {
            said.push(verdict(&fs::create_dir(&directory)));
        }
        for setting in settings.iter().chain([&"power=1"]) {
            let (attribute, text) = setting.split_once('=').unwrap_or((setting, ""));
            said.push(verdict(&system::put(
                &directory.join(attribute),
                &unescape(text),
            )));
        }
        said.join(" ")
    }

    /// The names of the driver's disks in a directory, as questions know them.
    fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| self.driver.asked(entry.file_name().to_str()?))
            .collect();
        names.sort();
        names
    }

    fn left(&self) -> String {
        let mut left = self.names("/sys/block");
        left.extend(self.names("/dev").iter().map(|name| format!("/dev/{name}")));
        let devices = system::get(Path::new("/proc/devices"));
        if devices.split(' ').any(|word| word == self.driver.disk) {
            left.push("major".into());
        }
        if self.driver.tree().exists() {
            left.push("tree".into());
        }
        if self.module.is_loaded() {
            left.push("module".into());
        }
        left.join(" ")
    }
}
