// SPDX-License-Identifier: GPL-2.0

//! Makes up what to ask: a device, then operations on it.

mod scene;

mod operation;

mod settings;

use self::{
    operation::operation,
    scene::Scene,
    settings::{beginning, sharing},
};
use crate::question::Question;
use proptest::{collection::vec, option, prelude::*, sample::Index};

/// Questions to a driver, in their order: about one device, or about two that share their tags; with
/// faults, if they can be asked for.
pub fn questions(attributes: Vec<String>, faults: bool) -> impl Strategy<Value = Vec<Question>> {
    let block = || (0..8u32).prop_map(|shift| 512u64 << shift);
    let later = prop_oneof![9 => Just(None), 1 => block().prop_map(Some)];
    let first = (block(), beginning());
    let second = option::weighted(0.1, (sharing(), (block(), beginning())));
    let operations = vec((any::<Index>(), operation()), 1..40);
    (first, second, later, operations).prop_map(move |(first, second, later, operations)| {
        let mut scene = Scene::new(&attributes, faults, later);
        let (sharing, second) = second.unzip();
        if let Some(parameters) = sharing {
            scene.load(parameters);
        }
        scene.add("a", first);
        if let Some(second) = second {
            scene.add("b", second);
        }
        scene.play(operations)
    })
}
