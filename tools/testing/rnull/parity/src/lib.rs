// SPDX-License-Identifier: GPL-2.0

//! Asks two drivers the same questions.

pub mod transcript;

pub mod generate;

pub mod model;

pub mod offer;

pub mod watch;

pub mod ask;

pub mod module;

pub mod question;

pub mod sysfs;

pub mod log;

pub mod pattern;

pub mod aio;

pub mod ring;

pub mod memory;

pub mod system;

pub mod driver;
