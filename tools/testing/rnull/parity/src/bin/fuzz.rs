// SPDX-License-Identifier: GPL-2.0

//! Asks null_blk with rnull what nobody thought of, while a model decides who is right.
//!
//! usage: fuzz SECONDS SEED    as many devices as fit into the time, each from its own seed
//!        fuzz FILE            the questions of a file, e.g. those that a failure left

use parity::{
    ask::Asker,
    driver::{NULL_BLK, RNULL},
    generate,
    model::{Answer, Judgement, Machine, Model},
    offer::Offer,
    question::Question,
    system, transcript,
    watch::Watch,
};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    process::exit,
    thread::available_parallelism,
    time::{Duration, Instant},
};

/// What was seen so far.
#[derive(Default)]
struct Tally {
    devices: usize,
    questions: usize,
    /// Bytes that were read from rnull and are right.
    bytes: usize,
    /// How often null_blk showed which defect.
    defects: BTreeMap<u32, usize>,
}

/// How the drivers are loaded.
const STANDARD: [&str; 2] = ["load", "nr_devices=0"];

struct Bench {
    watch: Watch,
    askers: [Asker; 2],
    machine: Machine,
    /// Whether the drivers are loaded with other parameters than those they begin with.
    loaded: bool,
    tally: Tally,
}

impl Bench {
    fn answers(asker: &mut Asker, question: &Question) -> Vec<Answer> {
        match question {
            Question::Words(_) => vec![Answer {
                said: asker.ask(question),
                bytes: Vec::new(),
            }],
            _ => asker
                .transfer(question)
                .into_iter()
                .map(|done| Answer {
                    said: done.said,
                    bytes: done.bytes,
                })
                .collect(),
        }
    }

    /// Asks all questions; says the first wrong answer.
    fn play(&mut self, questions: &[Question], loud: bool) -> Result<(), String> {
        let mut models = [
            Model::new(self.machine, true),
            Model::new(self.machine, false),
        ];
        let loads =
            |question: &Question| matches!(question, Question::Words(words) if words[0] == "load");
        let again = std::mem::replace(&mut self.loaded, questions.iter().any(loads));
        for asker in &mut self.askers {
            asker.clean();
            if again {
                asker.ask(&Question::words(&STANDARD));
            }
        }
        self.tally.devices += 1;
        self.watch.begin(questions);
        let mut alone = false;
        for (i, question) in questions.iter().enumerate() {
            alone |= models[0].is_dangerous();
            // What was not alike before cannot be compared.
            let like = models[0].is_like(&models[1]);
            let (mut said, mut alike) = (Vec::new(), false);
            for (asker, model) in self.askers.iter_mut().zip(&mut models).skip(alone.into()) {
                self.watch.ask(i, asker.driver.name);
                let answers = Self::answers(asker, question);
                let name = asker.driver.name;
                if loud {
                    println!("    {name}: {question} => {}", show(question, &answers));
                }
                self.tally.questions += 1;
                let judgement = model.judge(question, &answers);
                said.push((name, answers));
                match &judgement {
                    Judgement::Right if asker.driver == RNULL => {
                        let all = said.iter().rev().take(1).flat_map(|(_, answers)| answers);
                        self.tally.bytes += all.map(|answer| answer.bytes.len()).sum::<usize>();
                    }
                    Judgement::Right | Judgement::Alike => {}
                    Judgement::Known(defect) => {
                        *self.tally.defects.entry(*defect).or_default() += 1
                    }
                    Judgement::Wrong(right) => {
                        let why = format!("{name}, question {}: {question}", i + 1);
                        return Err(format!("{why}: {}; right is {right}", all(question, &said)));
                    }
                }
                alike |= judgement == Judgement::Alike;
            }
            if let (true, [(_, theirs), (_, ours)]) = (alike, &said[..]) {
                if theirs != ours && like {
                    let said = differing(&theirs[0].said, &ours[0].said);
                    return Err(format!("question {}: {question}: {said}", i + 1));
                }
            }
        }
        self.watch.begin(&[]);
        Ok(())
    }
}

/// What all have said.
fn all(question: &Question, said: &[(&str, Vec<Answer>)]) -> String {
    let show =
        |(name, answers): &(&str, Vec<Answer>)| format!("{name} {}", show(question, answers));
    said.iter().map(show).collect::<Vec<_>>().join("; ")
}

/// What both have said, without what is the same in both.
fn differing(theirs: &str, ours: &str) -> String {
    let (theirs, ours) = transcript::difference(theirs, ours);
    format!("null_blk '{theirs}', rnull '{ours}'")
}

/// Answers with what their bytes are.
fn show(question: &Question, answers: &[Answer]) -> String {
    let parts = match question {
        Question::Together { parts, .. } => parts,
        _ => std::slice::from_ref(question),
    };
    let show = |(part, answer): (&Question, &Answer)| match part {
        Question::Read { offset, .. } => {
            let what = parity::pattern::describe(*offset, &answer.bytes);
            format!("'{}' {what}", answer.said)
        }
        _ => format!("'{}'", answer.said),
    };
    let shown: Vec<String> = parts.iter().zip(answers).map(show).collect();
    shown.join(", ")
}

fn rng(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn replay(bench: &mut Bench, path: &str) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let questions: Result<Vec<Question>, String> = lines.map(str::parse).collect();
    match questions.and_then(|questions| bench.play(&questions, true)) {
        Ok(()) => println!("ok fuzz: replay"),
        Err(why) => println!("not ok fuzz: replay - {why}"),
    }
    true
}

fn hunt(bench: Bench, attributes: Vec<String>, faults: bool, time: Duration, first: u64) {
    let begin = Instant::now();
    let bench = RefCell::new(bench);
    let strategy = generate::questions(attributes, faults);
    let mut failed = false;
    let mut seed = first;
    while begin.elapsed() < time {
        let config = Config {
            cases: 1,
            max_shrink_iters: 3000,
            max_shrink_time: 60_000,
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, rng(seed));
        let found = runner.run(&strategy, |questions| {
            let play = bench.borrow_mut().play(&questions, false);
            play.map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(why, questions)) = found {
            println!("not ok fuzz: seed {seed} - {why}");
            println!("    # SEED={seed}; these questions show it, as a file for REPLAY=");
            questions
                .iter()
                .for_each(|question| println!("    {question}"));
            failed = true;
            break;
        }
        seed += 1;
    }
    let tally = &bench.borrow().tally;
    if !failed {
        println!("ok fuzz: seeds {first} to {}", seed - 1);
    }
    println!(
        "{} devices, {} questions, {} bytes read right",
        tally.devices, tally.questions, tally.bytes
    );
    for (defect, count) in &tally.defects {
        println!("null_blk showed defect {defect} {count} times");
    }
    // A test that asked nothing has proved nothing.
    if !failed && (tally.questions < 100 || tally.bytes < 1 << 20) {
        println!("not ok fuzz - too little was asked");
        failed = true;
    }
    exit(failed.into());
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let offers = [NULL_BLK, RNULL].map(|driver| {
        Offer::of(driver).unwrap_or_else(|why| {
            println!("not ok fuzz - {why}");
            exit(1);
        })
    });
    let [theirs, ours] = offers;
    let mut attributes = theirs.attributes;
    attributes.retain(|name| ours.attributes.contains(name) && !name.starts_with("zone"));
    // Where a kernel injects faults, there are parameters for them.
    let faults = [theirs.parameters, ours.parameters]
        .iter()
        .all(|names| names.iter().any(|name| name == "timeout"));
    let mut askers = [NULL_BLK, RNULL].map(|driver| Asker::new(driver, &attributes, &[]));
    for asker in &mut askers {
        asker.ask(&Question::words(&STANDARD));
    }
    let machine = Machine {
        cpus: available_parallelism().map_or(1, |n| n.get() as u64),
        poll_queues: system::get(&NULL_BLK.parameter("poll_queues"))
            .parse()
            .unwrap_or(0),
    };
    let mut bench = Bench {
        watch: Watch::new(),
        askers,
        machine,
        loaded: false,
        tally: Tally::default(),
    };
    match &words[..] {
        [seconds, seed] => match (seconds.parse(), seed.parse()) {
            (Ok(seconds), Ok(seed)) => hunt(
                bench,
                attributes,
                faults,
                Duration::from_secs(seconds),
                seed,
            ),
            _ => println!("not ok fuzz - SECONDS and SEED are numbers"),
        },
        [file] => exit((!replay(&mut bench, file)).into()),
        _ => println!("not ok fuzz - usage: fuzz SECONDS SEED | fuzz FILE"),
    }
    exit(1);
}
