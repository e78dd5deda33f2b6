// SPDX-License-Identifier: GPL-2.0

//! A block driver that does everything wrong that compiles.
//!
//! No driver without `unsafe` can break the kernel: this one tries to. It makes disks whose
//! requests are kept, refused, dropped and queued again by chance; it drops handles in callbacks,
//! under locks and in interrupts; it asks for what makes no sense. A user program leads it through
//! configfs, and does I/O meanwhile:
//!
//! ```text
//!     /sys/kernel/config/adversary
//!       begin     the number of a step begins its scene, with the disks adv*
//!       act       a number does something with the scene
//!       work      a task ends requests
//!       end       ends the scene, and fails with ETIMEDOUT if something of it stays
//!       places    where the driver did something, and how often it dropped a handle there
//!       leak      a number says what is leaked next; reads as 0 when that has happened
//!       NAME      does nothing good, either
//! ```
//!
//! What a scene does follows from the parameter `seed` and the number of the step, as far as the
//! order in which things happen allows.

#![forbid(unsafe_code)]

mod tree;

mod scene;

mod sweeper;

mod drivers;

mod requests;

mod serve;

mod data;

mod deeds;

mod world;

mod extremes;

mod kind;

mod place;

mod leak;

mod chance;

use kernel::{
    configfs::Subsystem,
    module_params,
    prelude::*,
    sync::Arc, //
};
use tree::{
    Leaf,
    Stages,
    Tree, //
};

module! {
    type: RustBlockAdversary,
    name: "rust_block_adversary",
    authors: ["rnull contributors"],
    description: "A block driver that does everything wrong",
    license: "GPL",
}

module_params! {
    module: "rust_block_adversary";

    seed: ulong = 1, "What all choices follow from. Default: 1";
    first: ulong = 0, "The first step that loading does. Default: 0";
    steps: uint = 0, "How many steps loading does. Default: 0";
    without: uint = 0,
        "Left out: 1-drops 2-stores 4-bad 8-changes 16-locks. Default: 0";
    fail: uint = 0, "Where loading fails: 1-before, 2-in, 3-after a scene. Default: 0 (nowhere)";
    leak: uint = 0, "Whether loading leaks a directory. Default: 0";
}

/// How often something is done with a scene that loading begins.
const ACTS: u64 = 8;

/// What lives while the module is loaded.
struct RustBlockAdversary {
    /// None when it goes.
    tree: Option<Subsystem<Tree>>,
    stages: Arc<Stages>,
}

/// Fails where the user wants it.
fn fail_at(place: u32) -> Result {
    if FAIL.get() == place {
        return Err(ENXIO);
    }
    Ok(())
}

impl kernel::Module for RustBlockAdversary {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let stages = Stages::new(SEED.get() as u64, WITHOUT.get());
        let stages = Arc::pin_init(stages, GFP_KERNEL)?;
        let tree = Subsystem::new(c"adversary", module, Ok(Tree::new(stages.clone())))?;
        let this = Self {
            tree: Some(tree),
            stages,
        };
        fail_at(1)?;
        if LEAK.get() != 0 {
            let leaf = Leaf::new(&this.stages);
            core::mem::forget(Subsystem::new(c"adversary_leaked", module, Ok(leaf))?);
        }
        for step in 0..u64::from(STEPS.get()) {
            // A directory that comes and goes while others look into it.
            let leaf = Leaf::new(&this.stages);
            let more = Subsystem::new(c"adversary_more", module, Ok(leaf));
            let _ = this.stages.begin((FIRST.get() as u64).wrapping_add(step));
            for number in 0..ACTS {
                let _ = this.stages.act(number);
            }
            fail_at(2)?;
            let _ = this.stages.end();
            drop(more);
        }
        fail_at(3)?;
        Ok(this)
    }
}

impl Drop for RustBlockAdversary {
    fn drop(&mut self) {
        // Nothing begins any more.
        self.tree = None;
        let _ = self.stages.end();
    }
}
