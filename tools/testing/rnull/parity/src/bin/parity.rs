// SPDX-License-Identifier: GPL-2.0

//! Asks null_blk, asks rnull at the same time, compares what they say.
//!
//! usage: parity QUESTIONS DIFFERENCES

use parity::{
    ask::Asker,
    driver::{Driver, NULL_BLK, RNULL},
    question::Question,
    system,
    transcript::{self, Allowed, Case},
};
use std::{
    fs,
    process::exit,
    sync::mpsc::{channel, RecvTimeoutError},
    thread,
    time::Duration,
};

/// A driver that takes longer for one case hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a driver offers: attributes by `features`, parameters by sysfs.
struct Offer {
    attributes: Vec<String>,
    parameters: Vec<String>,
}

impl Offer {
    fn of(driver: Driver) -> Self {
        let mut asker = Asker::new(driver, &[], &[]);
        let said = asker.ask(&Question::words(&["load", "nr_devices=0"]));
        if said != "ok" {
            println!("not ok parity - {} does not load: {said}", driver.name);
            exit(1);
        }
        let features = system::get(&driver.path("features"));
        let mut parameters: Vec<String> = fs::read_dir(driver.parameter(""))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        parameters.sort();
        Self {
            attributes: features.split(',').map(String::from).collect(),
            parameters,
        }
    }
}

fn is_zoned(name: &str) -> bool {
    name.starts_with("zone")
}

/// The names that both have; says which are missing in rnull.
fn common(kind: &str, theirs: &[String], ours: &[String], failed: &mut bool) -> Vec<String> {
    for name in theirs.iter().filter(|name| !ours.contains(name)) {
        println!("skip parity: {kind} {name} - rnull does not have it");
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
    let (theirs, ours) = (Offer::of(NULL_BLK), Offer::of(RNULL));
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
    // What rnull does not have yet is not asked for; it was counted above.
    let absent = |(parameter, name): &(bool, String)| {
        let (theirs, ours) = match parameter {
            true => (&theirs.parameters, &ours.parameters),
            false => (&theirs.attributes, &ours.attributes),
        };
        theirs.contains(name) && !ours.contains(name)
    };
    // Without polling in rnull null_blk goes without it, too.
    let polls = ours.parameters.iter().any(|name| name == "poll_queues");
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
        println!("skip parity: {left} of {asked} cases - they need what rnull does not have");
    }

    let (progress, cases_begun) = channel();
    let watchdog = thread::spawn(move || loop {
        let mut last = String::new();
        loop {
            match cases_begun.recv_timeout(PATIENCE) {
                Ok(now) => last = now,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    println!("not ok parity - no answer for a minute, the last case was {last}");
                    exit(1);
                }
            }
        }
    });
    let answers: Vec<Vec<Vec<String>>> = thread::scope(|scope| {
        [NULL_BLK, RNULL]
            .map(|driver| {
                let mut asker = Asker::new(driver, &attributes, &parameters);
                if driver == NULL_BLK && !polls {
                    asker.more = " poll_queues=0".into();
                }
                let (progress, cases) = (progress.clone(), &cases);
                scope.spawn(move || {
                    let name = driver.name;
                    interview(asker, cases, |i| {
                        let _ = progress.send(format!("{name}: {}", cases[i].name));
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
