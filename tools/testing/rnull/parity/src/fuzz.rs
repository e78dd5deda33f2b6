// SPDX-License-Identifier: GPL-2.0

//! Gives both drivers random commands, whose answers a model judges.

use crate::{
    client::Client,
    command::Command,
    compare,
    driver::RNULL,
    generate,
    model::{Judgement, Model, System},
    system,
};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    mem,
    path::Path,
    thread::available_parallelism,
    time::{Duration, Instant},
};

/// What was checked so far.
#[derive(Default)]
struct Tally {
    devices: usize,
    commands: usize,
    /// Bytes that were read from rnull and are right.
    bytes: usize,
    /// How often null_blk showed which defect.
    defects: BTreeMap<u32, usize>,
}

/// Runs series of commands.
struct Fuzzer {
    clients: [Client; 2],
    system: System,
    /// Whether the last series has loaded the drivers with other parameters.
    reloaded: bool,
    tally: Tally,
}

impl Fuzzer {
    fn new(clients: [Client; 2]) -> Self {
        let poll_queues = clients[0].driver.parameters().join("poll_queues");
        Self {
            clients,
            system: System {
                cpus: available_parallelism().map_or(1, |n| n.get() as u64),
                poll_queues: system::read(&poll_queues).parse().unwrap_or(0),
            },
            reloaded: false,
            tally: Tally::default(),
        }
    }

    /// Executes all commands; the error is the first wrong answer.
    fn run(&mut self, commands: &[Command], verbose: bool) -> Result<(), String> {
        let mut models = [true, false].map(|is_null_blk| Model::new(self.system, is_null_blk));
        let loads = |command: &Command| matches!(command, Command::Words(w) if w[0] == "load");
        let reload = mem::replace(&mut self.reloaded, commands.iter().any(loads));
        for client in &mut self.clients {
            client.reset();
            if reload {
                client.execute(&Command::words(&["load", "nr_devices=0"]));
            }
        }
        self.tally.devices += 1;
        let mut only_rnull = false;
        for (i, command) in (1..).zip(commands) {
            only_rnull |= models[0].is_dangerous() || models[0].bypasses_zones(command);
            // What was different before cannot be compared.
            let comparable = !only_rnull && models[0].is_like(&models[1]);
            let (mut answers, mut same, mut wrong) = (Vec::new(), false, None);
            let mut texts = Vec::new();
            let all = self.clients.iter_mut().zip(&mut models);
            for (client, model) in all.skip(only_rnull.into()) {
                let name = client.driver.name;
                let answer = client.execute(command);
                let text = format!("{name} '{}'", command.describe(&answer));
                if verbose {
                    println!("    {command} => {text}");
                }
                texts.push(text);
                self.tally.commands += 1;
                match model.judge(command, &answer) {
                    Judgement::Right if client.driver == RNULL => {
                        self.tally.bytes += answer.iter().map(|a| a.bytes.len()).sum::<usize>();
                    }
                    Judgement::Right => {}
                    Judgement::SameAsOther => same = true,
                    Judgement::Defect(number) => {
                        *self.tally.defects.entry(number).or_default() += 1
                    }
                    Judgement::Wrong(right) => {
                        wrong.get_or_insert(format!("right of {name} is {right}"));
                    }
                }
                answers.push(answer);
            }
            if let Some(why) = wrong {
                return Err(format!("{i}: {command}: {}; {why}", texts.join(", ")));
            }
            if let (true, true, [a, b]) = (same, comparable, &answers[..]) {
                if a != b {
                    let (a, b) = compare::difference(&a[0].text, &b[0].text);
                    let why = format!("null_blk '{a}', rnull '{b}'");
                    return Err(format!("{i}: {command}: {why}"));
                }
            }
        }
        Ok(())
    }
}

/// Runs the commands of a file; returns whether the answers are right.
pub fn replay(clients: [Client; 2], file: &Path) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let commands: Result<Vec<_>, _> = compare::lines(&text).map(str::parse).collect();
    match Fuzzer::new(clients).run(&commands?, true) {
        Ok(()) => println!("ok fuzz: replay"),
        Err(why) => {
            println!("not ok fuzz: replay - {why}");
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs random commands for a time, from one seed after the other; returns whether all answers are
/// right.
pub fn run(mut clients: [Client; 2], time: Duration, first: u64) -> bool {
    let attributes = clients[0].attributes.iter();
    let common = |name: &&String| clients[1].attributes.contains(name);
    let attributes: Vec<String> = attributes.filter(common).cloned().collect();
    // A kernel that can inject faults has parameters for them.
    let has_faults = |client: &Client| client.parameters.iter().any(|name| name == "timeout");
    let faults = clients.iter().all(has_faults);
    for client in &mut clients {
        client.attributes.clone_from(&attributes);
    }
    let fuzzer = RefCell::new(Fuzzer::new(clients));
    let system = fuzzer.borrow().system;
    let strategy = generate::commands(attributes, faults, system);
    let begin = Instant::now();
    let mut failed = false;
    let mut seed = first;
    while begin.elapsed() < time && !failed {
        let config = Config {
            cases: 1,
            max_shrink_iters: 3000,
            max_shrink_time: 60_000,
            failure_persistence: None,
            ..Config::default()
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let found = TestRunner::new_with_rng(config, rng).run(&strategy, |commands| {
            let result = fuzzer.borrow_mut().run(&commands, false);
            result.map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(why, commands)) = found {
            println!("not ok fuzz: seed {seed} - {why}");
            println!("    # SEED={seed}; these commands show it, as a file for REPLAY=");
            commands
                .iter()
                .for_each(|command| println!("    {command}"));
            failed = true;
        }
        seed += 1;
    }
    if !failed {
        println!("ok fuzz: seeds {first} to {}", seed - 1);
    }
    let tally = &fuzzer.borrow().tally;
    let (devices, commands, bytes) = (tally.devices, tally.commands, tally.bytes);
    println!("{devices} devices, {commands} commands, {bytes} bytes read right");
    for (defect, count) in &tally.defects {
        println!("null_blk showed defect {defect} {count} times");
    }
    // A test that did nothing has proved nothing.
    let enough = commands >= 100 && bytes >= 1 << 20;
    if !failed && !enough {
        println!("not ok fuzz - too few commands");
    }
    !failed && enough
}
