// SPDX-License-Identifier: GPL-2.0

//! Prints, checks or writes the ledger of unsafe operations.
//!
//! usage: rnull-unsafe-ledger TOP LEDGER print|check|record

use ledger::{ledger as text, tree, world::Entry};
use std::{env, fs, path::Path, process::ExitCode};

const SCRIPT: &str = "scripts/unsafe-ledger";

/// Whether all is well; what is not well is printed.
fn run(top: &Path, ledger: &Path, mode: &str) -> Result<bool, String> {
    let world = tree::read(top)?;
    let (entries, faults) = world.entries();
    for fault in &faults {
        eprintln!("{fault}");
    }
    let plain: Vec<Entry> = entries.iter().map(|(entry, _)| entry.clone()).collect();
    let now = text::write(&world, &plain);
    match mode {
        "print" => print!("{now}"),
        "record" => {
            if !faults.is_empty() {
                return Err("nothing was recorded; mend the above first".to_string());
            }
            fs::write(ledger, now).map_err(|error| format!("{}: {error}", ledger.display()))?;
        }
        // The entries are not all there; what they lack would be told twice.
        "check" if !faults.is_empty() => {}
        "check" => {
            let committed = fs::read_to_string(ledger)
                .map_err(|error| format!("{}: {error}", ledger.display()))?;
            let differences = text::compare(&committed, &entries);
            for difference in &differences {
                eprintln!("{difference}");
            }
            let count = differences.len();
            if count > 0 {
                return Err(format!("the ledger differs from the code {count} times; see what {SCRIPT} --record changes"));
            }
            if committed != now {
                return Err(format!(
                    "the ledger has all entries, but not as {SCRIPT} --record writes them"
                ));
            }
        }
        _ => return Err(format!("there is no mode {mode}")),
    }
    Ok(faults.is_empty())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [top, ledger, mode] = arguments.as_slice() else {
        eprintln!("usage: rnull-unsafe-ledger TOP LEDGER print|check|record");
        return ExitCode::from(2);
    };
    match run(Path::new(top), Path::new(ledger), mode) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
