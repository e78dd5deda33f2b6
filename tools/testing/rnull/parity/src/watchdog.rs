// SPDX-License-Identifier: GPL-2.0

//! Ends the test when a driver hangs.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::exit,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use crate::system;

/// A driver that takes longer for a command hangs.
const LIMIT: Duration = Duration::from_secs(90);

struct State {
    last: Option<Instant>,
    /// The commands that each driver was given since it was last without devices.
    commands: BTreeMap<&'static str, Vec<String>>,
}

static STATE: Mutex<State> = Mutex::new(State {
    last: None,
    commands: BTreeMap::new(),
});

/// Checks every second.
pub fn start() {
    thread::spawn(|| loop {
        thread::sleep(Duration::from_secs(1));
        check();
    });
}

/// The driver is without devices.
pub fn reset(driver: &'static str) {
    update(driver, Vec::clear);
}

/// The driver is given a command.
pub fn command(driver: &'static str, command: String) {
    update(driver, |commands| commands.push(command));
}

fn update(driver: &'static str, change: impl FnOnce(&mut Vec<String>)) {
    let mut state = STATE.lock().expect("no panic while it is locked");
    state.last = Some(Instant::now());
    change(state.commands.entry(driver).or_default());
}

fn check() {
    let state = STATE.lock().expect("no panic while it is locked");
    if state.last.is_none_or(|last| last.elapsed() <= LIMIT) {
        return;
    }
    println!("not ok parity - a driver hangs, each at the last of these (files for REPLAY=)");
    for (driver, commands) in &state.commands {
        println!("    # {driver}");
        commands.iter().for_each(|line| println!("    {line}"));
    }
    for disk in system::names(Path::new("/sys/block")) {
        let path = Path::new("/sys/block").join(&disk).join("inflight");
        println!("    # {disk}, in flight: {}", system::read(&path));
    }
    for fd in system::names(Path::new("/proc/self/fdinfo")) {
        let info = system::read(&Path::new("/proc/self/fdinfo").join(fd));
        if info.contains("SqMask") {
            println!("    # io_uring: {info}");
        }
    }
    // A task that waits for I/O cannot be killed.
    for key in ["w", "l", "o"] {
        let _ = fs::write("/proc/sysrq-trigger", key);
        thread::sleep(Duration::from_secs(1));
    }
    exit(1);
}
