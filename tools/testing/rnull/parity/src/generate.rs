// SPDX-License-Identifier: GPL-2.0

//! Makes up what to ask: a device, then operations on it.

mod scene;

mod operation;

mod settings;

use self::{operation::operation, scene::Scene, settings::beginning};
use crate::question::Question;
use proptest::{collection::vec, prelude::*};

/// Questions about one device, in their order.
pub fn questions(attributes: Vec<String>) -> impl Strategy<Value = Vec<Question>> {
    let block = (0..8u32).prop_map(|shift| 512u64 << shift);
    let later =
        prop_oneof![9 => Just(None), 1 => (0..8u32).prop_map(|shift| Some(512u64 << shift))];
    (block, later, beginning(), vec(operation(), 1..40)).prop_map(
        move |(block, later, beginning, operations)| {
            Scene::new(&attributes, block, later).play(beginning, operations)
        },
    )
}
