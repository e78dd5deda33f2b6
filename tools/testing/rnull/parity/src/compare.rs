// SPDX-License-Identifier: GPL-2.0

//! Compares the answers of both drivers to the commands of each case.

use crate::{client::Client, command::Command};
use std::{cell::Cell, fs, path::Path, thread};

/// A command, and the pattern of what both drivers answer if that is known.
struct Step {
    command: Command,
    expected: Option<String>,
}

/// A series of commands, which starts with a driver that has no devices.
struct Case {
    name: String,
    steps: Vec<Step>,
}

/// The lines of a file but comments and empty ones.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Parses cases: `case NAME`, then a command a line, some with ` => ANSWER`.
fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for line in lines(text) {
        if let Some(name) = line.strip_prefix("case ") {
            cases.push(Case {
                name: name.into(),
                steps: Vec::new(),
            });
            continue;
        }
        let (command, expected) = match line.split_once(" =>") {
            Some((command, expected)) => (command, Some(expected.trim().to_string())),
            None => (line, None),
        };
        let command = command.parse()?;
        let case = cases.last_mut().ok_or("a command before the first case")?;
        case.steps.push(Step { command, expected });
    }
    Ok(cases)
}

/// A difference that is allowed: patterns of the case, the command, both answers; the reason.
struct Allowed {
    patterns: [String; 4],
    reason: String,
    occurs: Cell<bool>,
}

impl Allowed {
    /// Parses lines of five columns with `|` between them.
    fn parse(text: &str) -> Result<Vec<Self>, String> {
        let parse = |line: &str| {
            let columns: Vec<String> = line.split('|').map(|text| text.trim().into()).collect();
            match <[String; 5]>::try_from(columns) {
                Ok([case, command, null_blk, rnull, reason]) if !reason.is_empty() => Ok(Self {
                    patterns: [case, command, null_blk, rnull],
                    reason,
                    occurs: Cell::new(false),
                }),
                _ => Err(format!("not five columns: {line}")),
            }
        };
        lines(text).map(parse).collect()
    }

    fn covers(&self, difference: [&str; 4]) -> bool {
        let mut pairs = self.patterns.iter().zip(difference);
        let covers = pairs.all(|(pattern, text)| matches(pattern, text));
        self.occurs.set(self.occurs.get() || covers);
        covers
    }
}

/// Whether a text matches a pattern, in which `*` matches anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| matches(tail, &rest[at..]))
        }),
    }
}

/// Two answers; of long ones with as many words only the words that differ.
pub fn difference(null_blk: &str, rnull: &str) -> (String, String) {
    let (a, b): (Vec<_>, Vec<_>) = (null_blk.split(' ').collect(), rnull.split(' ').collect());
    if a.len() != b.len() || a.len() < 8 {
        return (null_blk.into(), rnull.into());
    }
    let (a, b): (Vec<_>, Vec<_>) = a.into_iter().zip(b).filter(|(a, b)| a != b).unzip();
    (a.join(" "), b.join(" "))
}

/// Compares the answers to one case; returns the failures.
fn compare(case: &Case, answers: [&[String]; 2], allowed: &[Allowed]) -> Vec<String> {
    let mut failures = Vec::new();
    if answers
        .iter()
        .any(|answers| answers.len() != case.steps.len())
    {
        failures.push("not all commands were answered".into());
    }
    let pairs = answers[0].iter().zip(answers[1]);
    for (i, (step, (null_blk, rnull))) in case.steps.iter().zip(pairs).enumerate() {
        let command = step.command.to_string();
        let line = format!("{}: {command}", i + 1);
        if null_blk != rnull {
            let (a, b) = difference(null_blk, rnull);
            let covers = |entry: &&Allowed| entry.covers([&case.name, &command, &a, &b]);
            // Not `any`: each entry that covers it occurs.
            if allowed.iter().filter(covers).count() == 0 {
                failures.push(format!("{line}: null_blk '{a}', rnull '{b}'"));
            }
        }
        let failure = match &step.expected {
            Some(expected) if !matches(expected, null_blk) => format!("expected '{expected}'"),
            // The same mistake in both answers proves nothing.
            None if null_blk.starts_with("ENOENT") || null_blk.starts_with("unknown") => {
                "which was not expected".into()
            }
            _ => continue,
        };
        failures.push(format!("{line}: null_blk '{null_blk}', {failure}"));
    }
    failures
}

/// Gives one driver the commands of all cases; returns its answers.
fn answers(client: &mut Client, cases: &[Case]) -> Vec<Vec<String>> {
    let mut is_standard = true;
    let answers = |case: &Case| {
        client.reset();
        let is = |step: &Step, verbs: &[&str]| match &step.command {
            Command::Words(words) => verbs.contains(&&*words[0]),
            _ => false,
        };
        if !is_standard && !case.steps.first().is_some_and(|step| is(step, &["load"])) {
            client.execute(&Command::words(&["load", "nr_devices=0"]));
        }
        let reload = |step| is(step, &["load", "unload", "try-unload"]);
        is_standard = !case.steps.iter().any(reload);
        let answer = |step: &Step| step.command.describe(&client.execute(&step.command));
        case.steps.iter().map(answer).collect()
    };
    cases.iter().map(answers).collect()
}

/// The names of attributes or parameters that both drivers have; counts those that rnull lacks or
/// has in addition.
fn common(kind: &str, [null_blk, rnull]: [&[String]; 2], failed: &mut bool) -> Vec<String> {
    let mut fail = |name, why| {
        println!("not ok parity: {kind} {name} - {why}");
        *failed = true;
    };
    let mut common = Vec::new();
    for name in null_blk {
        match rnull.contains(name) {
            true => common.push(name.clone()),
            false => fail(name, "rnull does not have it"),
        }
    }
    let added = rnull.iter().filter(|name| !null_blk.contains(name));
    added.for_each(|name| fail(name, "null_blk does not have it"));
    common
}

/// Runs all cases of a file; returns whether all have passed.
pub fn run(mut clients: [Client; 2], file: &Path, differences: &Path) -> Result<bool, String> {
    let read = |path: &Path| {
        let text = fs::read_to_string(path);
        text.map_err(|why| format!("{}: {why}", path.display()))
    };
    let cases = cases(&read(file)?)?;
    let allowed = Allowed::parse(&read(differences)?)?;
    let mut failed = false;
    let [a, b] = &clients;
    let attributes = common("attribute", [&a.attributes, &b.attributes], &mut failed);
    let parameters = common("parameter", [&a.parameters, &b.parameters], &mut failed);
    let all = thread::scope(|scope| {
        let threads = clients.each_mut().map(|client| {
            client.attributes.clone_from(&attributes);
            client.parameters.clone_from(&parameters);
            scope.spawn(|| answers(client, &cases))
        });
        threads.map(|thread| thread.join().unwrap_or_default())
    });
    for (i, case) in cases.iter().enumerate() {
        let answers = all.each_ref().map(|all| all.get(i).map_or(&[][..], |a| a));
        let failures = compare(case, answers, &allowed);
        match failures.split_first() {
            None => println!("ok parity: {} ({} answers)", case.name, case.steps.len()),
            Some((first, rest)) => {
                println!("not ok parity: {} - {first}", case.name);
                rest.iter().for_each(|why| println!("    {why}"));
                failed = true;
            }
        }
    }
    for entry in allowed.iter().filter(|entry| !entry.occurs.get()) {
        let [case, command, ..] = &entry.patterns;
        let why = format!("{case}: {command}: {}", entry.reason);
        println!("not ok parity: an allowed difference does not occur - {why}");
        failed = true;
    }
    Ok(!failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(text: &str, null_blk: &[&str], rnull: &[&str], allowed: &str) -> usize {
        let cases = cases(text).unwrap();
        let own = |all: &[&str]| all.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let allowed = Allowed::parse(allowed).unwrap();
        let failures = compare(&cases[0], [&own(null_blk), &own(rnull)], &allowed);
        failures.len() + allowed.iter().filter(|entry| !entry.occurs.get()).count()
    }

    #[test]
    fn differences_are_failures() {
        let case = "case a\nmkdir x\nrmdir x => ok";
        for (null_blk, rnull, count) in [
            (&["ok", "ok"][..], &["ok", "ok"][..], 0),
            (&["ok", "ok"], &["ok", "EBUSY"], 1),
            (&["ok", "EBUSY"], &["ok", "EBUSY"], 1),
            (&["ENOENT", "ok"], &["ENOENT", "ok"], 1),
            (&["ok", "ok"], &["ok"], 1),
        ] {
            assert_eq!(failures(case, null_blk, rnull, ""), count);
        }
    }

    #[test]
    fn allowed_differences_have_to_occur() {
        let case = "case a\nmkdir x";
        let allowed = "a | mkdir * | ok | E* | a reason";
        assert_eq!(failures(case, &["ok"], &["EBUSY"], allowed), 0);
        assert_eq!(failures(case, &["ok"], &["ok"], allowed), 1);
        assert_eq!(failures(case, &["EBUSY"], &["ok"], allowed), 2);
        assert!(Allowed::parse("a | b | c | d |").is_err());
    }

    #[test]
    fn long_answers_differ_in_words() {
        let (a, b) = difference("a b c d e f g h", "a b c x e f g h");
        assert_eq!((a.as_str(), b.as_str()), ("d", "x"));
    }

    #[test]
    fn patterns_match() {
        assert!(matches("a*c", "abbc") && matches("*", "") && matches("a", "a"));
        assert!(!matches("a*c", "ab") && !matches("", "a"));
    }
}
