// SPDX-License-Identifier: GPL-2.0

//! The answers of a controller to the command Identify.
//!
//! Each parser takes a copy of the answer, so the device cannot change it any more. Any content is
//! parsed without a panic, in bounded time: what is not usable is refused, or left out.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

pub(crate) mod controller;

pub(crate) mod nvm_limits;

pub(crate) mod namespace;

pub(crate) mod active_list;

pub(crate) mod descriptors;

pub(crate) mod text;

pub(crate) mod answer;

pub(crate) use answer::Answer;
