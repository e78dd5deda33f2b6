// SPDX-License-Identifier: GPL-2.0

//! What two drivers answered, side by side.

use crate::question::Question;
use std::cell::Cell;

/// A question, and what every driver has to answer if that is known.
#[derive(Clone, Debug)]
pub struct Asked {
    pub question: Question,
    pub expected: Option<String>,
}

/// Questions that belong together; each case begins with a driver that has no device.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub name: String,
    pub questions: Vec<Asked>,
}

/// Reads cases: `case NAME`, then a question a line, some with ` => ANSWER`.
pub fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("case ") {
            cases.push(Case {
                name: name.into(),
                ..Case::default()
            });
            continue;
        }
        let (question, expected) = match line.split_once(" =>") {
            Some((question, expected)) => (question, Some(expected.trim().to_string())),
            None => (line, None),
        };
        let question = question.parse()?;
        let case = cases.last_mut().ok_or("a question before the first case")?;
        case.questions.push(Asked { question, expected });
    }
    Ok(cases)
}

/// A difference that is allowed, and why; all but the reason may have `*` in it.
pub struct Allowed {
    case: String,
    question: String,
    theirs: String,
    ours: String,
    reason: String,
    used: Cell<bool>,
}

impl Allowed {
    /// Reads lines of five columns with `|` between them.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| {
                let columns: Vec<&str> = line.split("|").map(str::trim).collect();
                match columns[..] {
                    [case, question, theirs, ours, reason] if !reason.is_empty() => Ok(Self {
                        case: case.into(),
                        question: question.into(),
                        theirs: theirs.into(),
                        ours: ours.into(),
                        reason: reason.into(),
                        used: Cell::new(false),
                    }),
                    _ => Err(format!("not five columns: {line}")),
                }
            })
            .collect()
    }

    fn covers(&self, case: &str, question: &str, theirs: &str, ours: &str) -> bool {
        let covers = matches(&self.case, case)
            && matches(&self.question, question)
            && matches(&self.theirs, theirs)
            && matches(&self.ours, ours);
        self.used.set(self.used.get() || covers);
        covers
    }

    /// Says what is wrong with an allowance that nothing made use of.
    pub fn unused(&self) -> Option<String> {
        let said = format!("{}: {}: {}", self.case, self.question, self.reason);
        (!self.used.get()).then_some(said)
    }
}

/// Whether a text is what a pattern with `*` says.
pub fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|&at| rest.is_char_boundary(at))
                .any(|at| matches(tail, &rest[at..]))
        }),
    }
}

/// Two answers without what is the same in both, word by word if they have as many words.
pub fn difference(theirs: &str, ours: &str) -> (String, String) {
    let words: (Vec<&str>, Vec<&str>) = (theirs.split(' ').collect(), ours.split(' ').collect());
    if words.0.len() != words.1.len() || words.0.len() < 8 {
        return (theirs.into(), ours.into());
    }
    let differing: Vec<_> = words
        .0
        .iter()
        .zip(&words.1)
        .filter(|(a, b)| a != b)
        .collect();
    let join = |pick: fn(&(&&str, &&str)) -> String| {
        differing.iter().map(pick).collect::<Vec<_>>().join(" ")
    };
    (
        join(|pair| pair.0.to_string()),
        join(|pair| pair.1.to_string()),
    )
}

/// Compares the answers to the questions of one case; returns what is wrong.
pub fn compare(
    case: &Case,
    theirs: &[String],
    ours: &[String],
    allowed: &[Allowed],
) -> Vec<String> {
    let mut wrong = Vec::new();
    if theirs.len() != case.questions.len() || ours.len() != case.questions.len() {
        wrong.push("not all questions were answered".into());
    }
    for (i, (asked, (theirs, ours))) in case
        .questions
        .iter()
        .zip(theirs.iter().zip(ours))
        .enumerate()
    {
        let question = asked.question.to_string();
        let line = format!("{}: {question}", i + 1);
        if theirs != ours {
            let (a, b) = difference(theirs, ours);
            let covers = |entry: &Allowed| entry.covers(&case.name, &question, &a, &b);
            // All that cover it, so that each of them counts as used.
            if allowed.iter().filter(|entry| covers(entry)).count() == 0 {
                wrong.push(format!("{line}: null_blk '{a}', rnull '{b}'"));
            }
        }
        match &asked.expected {
            Some(expected) if !matches(expected, theirs) => {
                wrong.push(format!(
                    "{line}: null_blk '{theirs}', expected '{expected}'"
                ));
            }
            Some(_) => {}
            // The same mistake in both answers proves nothing.
            None if theirs.starts_with("ENOENT") || theirs.starts_with("nobody") => {
                wrong.push(format!(
                    "{line}: null_blk '{theirs}', which was not expected"
                ));
            }
            None => {}
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(questions: &str, theirs: &[&str], ours: &[&str], allowed: &str) -> Vec<String> {
        let cases = cases(questions).unwrap();
        let own = |all: &[&str]| all.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let allowed = Allowed::read(allowed).unwrap();
        let mut wrong = compare(&cases[0], &own(theirs), &own(ours), &allowed);
        wrong.extend(allowed.iter().filter_map(|entry| entry.unused()));
        wrong
    }

    #[test]
    fn differences_are_seen() {
        let ask = "case a\nmkdir x\nrmdir x => ok";
        assert!(wrong(ask, &["ok", "ok"], &["ok", "ok"], "").is_empty());
        assert_eq!(wrong(ask, &["ok", "ok"], &["ok", "EBUSY"], "").len(), 1);
        assert_eq!(wrong(ask, &["ok", "EBUSY"], &["ok", "EBUSY"], "").len(), 1);
        assert_eq!(
            wrong(ask, &["ENOENT", "ok"], &["ENOENT", "ok"], "").len(),
            1
        );
        assert!(!wrong(ask, &["ok", "ok"], &["ok"], "").is_empty());
    }

    #[test]
    fn allowances_hold_both_ways() {
        let ask = "case a\nmkdir x";
        let allow = "a | mkdir * | ok | E* | a reason";
        assert!(wrong(ask, &["ok"], &["EBUSY"], allow).is_empty());
        assert_eq!(wrong(ask, &["ok"], &["ok"], allow).len(), 1);
        assert_eq!(wrong(ask, &["EBUSY"], &["ok"], allow).len(), 2);
        assert!(Allowed::read("a | b | c | d |").is_err());
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
