// SPDX-License-Identifier: GPL-2.0

//! Asks null_blk, asks rnull at the same time, compares what they say.
//!
//! usage: parity QUESTIONS DIFFERENCES

use parity::{
    ask::Asker,
    driver::{NULL_BLK, RNULL},
    offer::Offer,
    question::Question,
    transcript::{self, Allowed, Case},
};
use std::{
    collections::BTreeMap,
    fs,
    process::exit,
    sync::mpsc::{channel, RecvTimeoutError},
    thread,
    time::Duration,
};

/// A driver that takes longer for one case hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn is_zoned(name: &str) -> bool {
    name.starts_with("zone")
}

/// The names that both have; only those of zones may be missing in rnull.
fn common(kind: &str, theirs: &[String], ours: &[String], failed: &mut bool) -> Vec<String> {
    for name in theirs.iter().filter(|name| !ours.contains(name)) {
        if is_zoned(name) {
            println!("skip parity: {kind} {name} - rnull has no zones");
        } else {
            println!("not ok parity: {kind} {name} - rnull does not have it");
            *failed = true;
        }
    }
    for name in ours.iter().filter(|name| !theirs.contains(name)) {
        println!("not ok parity: {kind} {name} - null_blk does not have it");
        *failed = true;
    }
    let both = |name: &&String| ours.contains(name) && !is_zoned(name);
    theirs.iter().filter(both).cloned().collect()
}

/// All answers of one driver, case by case.
fn interview(mut asker: Asker, cases: &[Case], done: impl Fn(usize)) -> Vec<Vec<String>> {
    let standard = Question::words(&["load", "nr_devices=0"]);
    let mut is_standard = false;
    cases
        .iter()
        .enumerate()
        .map(|(i, case)| {
            done(i);
            asker.clean();
            // Whether the question is one of these words.
            let is = |q: &Question, words: &[&str]| {
                matches!(q, Question::Words(w) if words.contains(&w[0].as_str()))
            };
            let mut questions = case.questions.iter().map(|asked| &asked.question);
            let begins = questions.clone().next().is_some_and(|q| is(q, &["load"]));
            if !begins && !is_standard {
                asker.ask(&standard);
            }
            is_standard = !questions.any(|q| is(q, &["load", "unload", "unload-now"]));
            let questions = case.questions.iter();
            questions.map(|asked| asker.ask(&asked.question)).collect()
        })
        .collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|why| {
        println!("not ok parity - {path}: {why}");
        exit(1);
    })
}

fn usable<T>(what: Result<T, String>) -> T {
    what.unwrap_or_else(|why| {
        println!("not ok parity - {why}");
        exit(1);
    })
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, questions, differences] = &words[..] else {
        println!("not ok parity - usage: parity QUESTIONS DIFFERENCES");
        exit(2);
    };
    let mut cases = usable(transcript::cases(&read(questions)));
    let allowed = usable(Allowed::read(&read(differences)));

    let mut failed = false;
    let [theirs, ours] = [NULL_BLK, RNULL].map(|driver| usable(Offer::of(driver)));
    let attributes = common(
        "attribute",
        &theirs.attributes,
        &ours.attributes,
        &mut failed,
    );
    let parameters = common(
        "parameter",
        &theirs.parameters,
        &ours.parameters,
        &mut failed,
    );
    // What needs a name that is missing is not asked: zones, or what was said above.
    let absent = |(parameter, name): &(bool, String)| {
        let (theirs, ours) = match parameter {
            true => (&theirs.parameters, &ours.parameters),
            false => (&theirs.attributes, &ours.attributes),
        };
        theirs.contains(name) && !ours.contains(name)
    };
    let asked = cases.len();
    cases.retain(|case| {
        let mut needs = case
            .questions
            .iter()
            .flat_map(|asked| asked.question.needs());
        !needs.any(|need| absent(&need))
    });
    if cases.len() < asked {
        let left = asked - cases.len();
        println!("skip parity: {left} of {asked} cases - they need zones");
    }

    let (progress, cases_begun) = channel();
    let watchdog = thread::spawn(move || {
        let mut last = BTreeMap::new();
        loop {
            match cases_begun.recv_timeout(PATIENCE) {
                Ok((driver, case)) => last.insert(driver, case),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    println!(
                        "not ok parity - no answer for a minute, the last cases were {last:?}"
                    );
                    // Who waits for I/O cannot be ended.
                    thread::sleep(Duration::from_secs(1));
                    let _ = fs::write("/proc/sysrq-trigger", "w");
                    let _ = fs::write("/proc/sysrq-trigger", "o");
                    exit(1);
                }
            };
        }
    });
    let answers: Vec<Vec<Vec<String>>> = thread::scope(|scope| {
        [NULL_BLK, RNULL]
            .map(|driver| {
                let asker = Asker::new(driver, &attributes, &parameters);
                let (progress, cases) = (progress.clone(), &cases);
                scope.spawn(move || {
                    let name = driver.name;
                    interview(asker, cases, |i| {
                        let _ = progress.send((name, cases[i].name.clone()));
                    })
                })
            })
            .map(|thread| thread.join().unwrap_or_default())
            .into()
    });
    drop(progress);
    let _ = watchdog.join();

    for (i, case) in cases.iter().enumerate() {
        let wrong = transcript::compare(case, &answers[0][i], &answers[1][i], &allowed);
        if wrong.is_empty() {
            println!(
                "ok parity: {} ({} answers)",
                case.name,
                case.questions.len()
            );
        } else {
            println!("not ok parity: {} - {}", case.name, wrong[0]);
            wrong[1..].iter().for_each(|why| println!("    {why}"));
            failed = true;
        }
    }
    for why in allowed.iter().filter_map(Allowed::unused) {
        println!("not ok parity: a difference that is allowed does not occur - {why}");
        failed = true;
    }
    exit(failed.into());
}
