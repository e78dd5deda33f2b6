// SPDX-License-Identifier: GPL-2.0

//! The faults that happen for certain, so many times.

/// A directory of knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Knobs {
    /// In percent; all or nothing.
    probability: u64,
    /// How often it is yet to happen; for -1 always.
    times: i64,
}

impl Knobs {
    /// Whether it happens now.
    fn take(&mut self) -> bool {
        let happens = self.probability == 100 && self.times != 0;
        if happens && self.times > 0 {
            self.times -= 1;
        }
        happens
    }
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            probability: 0,
            times: 1,
        }
    }
}

/// The faults of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    timeout: Knobs,
    requeue: Knobs,
    init_hctx: Knobs,
}

impl Faults {
    /// Turns a knob to a number, `DIRECTORY/KNOB`; returns whether there is one.
    pub fn turn(&mut self, path: &str, text: &str) -> bool {
        let (directory, knob) = path.split_once('/').unwrap_or((path, ""));
        let knobs = match directory {
            "timeout_inject" => &mut self.timeout,
            "requeue_inject" => &mut self.requeue,
            "init_hctx_fault_inject" => &mut self.init_hctx,
            _ => return false,
        };
        let number = text.parse().unwrap_or(0);
        match knob {
            "probability" => knobs.probability = number as u64,
            "times" => knobs.times = number,
            _ => {}
        }
        true
    }

    /// Whether a request gets lost that comes now. It is asked after again each time that it is
    /// queued again, which does not show otherwise.
    pub fn lose(&mut self) -> bool {
        loop {
            let lost = self.timeout.take();
            if !self.requeue.take() {
                return lost;
            }
        }
    }

    /// Whether a hardware queue cannot be made.
    pub fn break_queue(&mut self) -> bool {
        self.init_hctx.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_happen_as_often_as_asked_for() {
        let mut faults = Faults::default();
        assert!(!faults.lose() && !faults.turn("size", "5"));
        assert!(faults.turn("timeout_inject/probability", "100"));
        assert!(faults.lose() && !faults.lose());
        assert!(faults.turn("timeout_inject/times", "-1") && faults.lose() && faults.lose());
        // What would be lost is queued again instead.
        assert!(faults.turn("timeout_inject/times", "1"));
        assert!(faults.turn("requeue_inject/probability", "100"));
        assert!(!faults.lose());
        assert!(!faults.break_queue());
    }
}
