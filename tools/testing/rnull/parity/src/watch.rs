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

    /// Takes note of the one that is asked now.
    pub fn ask(&self, number: usize) {
        let mut asked = self.asked();
        asked.since = Instant::now();
        asked.last = number;
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().expect("nobody panics with it")
    }

    fn look(&self) {
        let asked = self.asked();
        if asked.since.elapsed() <= PATIENCE || asked.questions.is_empty() {
            return;
        }
        println!("not ok fuzz - no answer to the last of these, as a file for REPLAY=");
        let questions = asked.questions.iter().take(asked.last + 1);
        questions.for_each(|question| println!("    {question}"));
        // Who waits for I/O cannot be ended.
        for key in ["w", "l", "o"] {
            let _ = fs::write("/proc/sysrq-trigger", key);
            thread::sleep(Duration::from_secs(1));
        }
        exit(1);
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}
