// SPDX-License-Identifier: GPL-2.0

//! Ends the test where an answer does not come.

use crate::question::Question;
use std::{
    fs,
    process::exit,
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// What is being asked.
struct Asked {
    since: Instant,
    questions: Vec<Question>,
    last: usize,
    driver: &'static str,
}

/// Somebody who looks every second whether there was an answer.
pub struct Watch(Arc<Mutex<Asked>>);

impl Watch {
    /// Begins to look.
    pub fn new() -> Self {
        let asked = Asked {
            since: Instant::now(),
            questions: Vec::new(),
            last: 0,
            driver: "",
        };
        let watch = Self(Arc::new(Mutex::new(asked)));
        let other = Self(watch.0.clone());
        thread::spawn(move || loop {
            thread::sleep(Duration::from_secs(1));
            other.look();
        });
        watch
    }

    /// Takes note of questions that are to be asked.
    pub fn begin(&self, questions: &[Question]) {
        let mut asked = self.asked();
        asked.since = Instant::now();
        asked.questions = questions.to_vec();
    }

    /// Takes note of the one that is asked now, and of whom.
    pub fn ask(&self, number: usize, driver: &'static str) {
        let mut asked = self.asked();
        asked.since = Instant::now();
        asked.last = number;
        asked.driver = driver;
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().expect("nobody panics with it")
    }

    fn look(&self) {
        let asked = self.asked();
        if asked.since.elapsed() <= PATIENCE || asked.questions.is_empty() {
            return;
        }
        let driver = asked.driver;
        println!("not ok fuzz - {driver} does not answer the last of these, as a file for REPLAY=");
        let questions = asked.questions.iter().take(asked.last + 1);
        questions.for_each(|question| println!("    {question}"));
        print_all("/sys/block", "inflight", "");
        print_all("/proc/self/fdinfo", "", "SqMask");
        // Who waits for I/O cannot be ended.
        for key in ["w", "l", "o"] {
            let _ = fs::write("/proc/sysrq-trigger", key);
            thread::sleep(Duration::from_secs(1));
        }
        exit(1);
    }
}

/// Prints all files of a name in the directories of another, that have a text in them.
fn print_all(directory: &str, name: &str, text: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path().join(name);
        let path = path.to_str().unwrap_or_default().trim_end_matches('/');
        let shown = fs::read_to_string(path).unwrap_or_default();
        if shown.contains(text) {
            println!("    # {path}: {}", shown.replace('\n', ", "));
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}
