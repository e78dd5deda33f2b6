// SPDX-License-Identifier: GPL-2.0

//! What a driver offers: attributes by `features`, parameters by sysfs.

use crate::{ask::Asker, driver::Driver, question::Question, system};
use std::fs;

/// Names of attributes, of parameters.
pub struct Offer {
    pub attributes: Vec<String>,
    pub parameters: Vec<String>,
}

impl Offer {
    /// Loads a driver without devices to see what it offers.
    pub fn of(driver: Driver) -> Result<Self, String> {
        let mut asker = Asker::new(driver, &[], &[]);
        let said = asker.ask(&Question::words(&["load", "nr_devices=0"]));
        if said != "ok" {
            return Err(format!("{} does not load: {said}", driver.name));
        }
        let features = system::get(&driver.path("features"));
        let mut parameters: Vec<String> = fs::read_dir(driver.parameter(""))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        parameters.sort();
        Ok(Self {
            attributes: features.split(',').map(String::from).collect(),
            parameters,
        })
    }
}
