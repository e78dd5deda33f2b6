// SPDX-License-Identifier: GPL-2.0

//! Compares null_blk with rnull, in one guest.
//!
//! usage: parity cases CASES DIFFERENCES    gives both drivers the commands of a file
//!        parity fuzz SECONDS SEED          random commands, each device from its own seed
//!        parity replay FILE                the commands of a file, e.g. those that a failure left

mod client;
mod command;
mod compare;
mod driver;
mod fuzz;
mod generate;
mod log;
mod model;
mod pattern;
mod sysfs;
mod system;
mod transfer;
mod watchdog;
mod zones;

use client::Client;
use driver::{NULL_BLK, RNULL};
use std::{path::Path, process::ExitCode, time::Duration};

fn run(arguments: &[&str]) -> Result<bool, String> {
    watchdog::start();
    let clients = || Ok::<_, String>([Client::new(NULL_BLK)?, Client::new(RNULL)?]);
    let number = |text: &str| text.parse().map_err(|why| format!("{text}: {why}"));
    match *arguments {
        ["cases", cases, differences] => {
            compare::run(clients()?, Path::new(cases), Path::new(differences))
        }
        ["fuzz", seconds, seed] => {
            let (seconds, seed) = (number(seconds)?, number(seed)?);
            Ok(fuzz::run(clients()?, Duration::from_secs(seconds), seed))
        }
        ["replay", file] => fuzz::replay(clients()?, Path::new(file)),
        _ => Err("usage: parity cases CASES DIFFERENCES | fuzz SECONDS SEED | replay FILE".into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            println!("not ok parity - {why}");
            ExitCode::FAILURE
        }
    }
}
