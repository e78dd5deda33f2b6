// SPDX-License-Identifier: GPL-2.0

//! Injected faults that are certain, a given number of times.

/// The directories of the faults in configfs.
const DIRECTORIES: [&str; 3] = ["timeout_inject", "requeue_inject", "init_hctx_fault_inject"];

/// The files of a directory.
#[derive(Clone, Debug)]
struct FaultAttr {
    /// In percent; 0 or 100.
    probability: i64,
    /// How often it will be injected; -1 for always.
    times: i64,
}

impl FaultAttr {
    fn should_fail(&mut self) -> bool {
        let fails = self.probability == 100 && self.times != 0;
        self.times -= i64::from(fails && self.times > 0);
        fails
    }
}

/// The faults of a device, in the order of [`DIRECTORIES`].
#[derive(Clone, Debug)]
pub struct Faults([FaultAttr; 3]);

impl Default for Faults {
    fn default() -> Self {
        Self(DIRECTORIES.map(|_| FaultAttr {
            probability: 0,
            times: 1,
        }))
    }
}

impl Faults {
    /// Sets `DIRECTORY/FILE` to a number; returns whether the directory is one of faults.
    pub fn set(&mut self, path: &str, text: &str) -> bool {
        let (directory, file) = path.split_once('/').unwrap_or((path, ""));
        let Some(fault) = DIRECTORIES.iter().position(|known| *known == directory) else {
            return false;
        };
        let number = text.parse().unwrap_or(0);
        match file {
            "probability" => self.0[fault].probability = number,
            "times" => self.0[fault].times = number,
            _ => {}
        }
        true
    }

    /// Whether a new request times out. The fault is evaluated again each time that the request is
    /// requeued, which does not show otherwise.
    pub fn should_timeout(&mut self) -> bool {
        loop {
            let fails = self.0[0].should_fail();
            if !self.0[1].should_fail() {
                return fails;
            }
        }
    }

    pub fn should_fail_init_hctx(&mut self) -> bool {
        self.0[2].should_fail()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_injected_so_many_times() {
        let mut faults = Faults::default();
        assert!(!faults.should_timeout() && !faults.set("size", "5"));
        assert!(faults.set("timeout_inject/probability", "100"));
        assert!(faults.should_timeout() && !faults.should_timeout());
        assert!(faults.set("timeout_inject/times", "-1"));
        assert!(faults.should_timeout() && faults.should_timeout());
        // A request that would time out is requeued instead.
        assert!(faults.set("timeout_inject/times", "1"));
        assert!(faults.set("requeue_inject/probability", "100"));
        assert!(!faults.should_timeout() && !faults.should_fail_init_hctx());
    }
}
