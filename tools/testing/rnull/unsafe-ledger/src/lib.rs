// SPDX-License-Identifier: GPL-2.0

//! Lists what is unsafe in Rust files, with what the comments on it cite.

pub mod ledger;
pub mod tree;
pub mod world;

pub mod citation;
pub mod operation;
pub mod site;

pub mod comment;
pub mod text;
