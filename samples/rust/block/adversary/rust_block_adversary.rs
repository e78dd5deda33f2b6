// SPDX-License-Identifier: GPL-2.0

//! A block driver that misuses the block layer in every way that compiles.
//!
//! A driver without `unsafe` must not be able to break the kernel. This driver tries to: it keeps,
//! rejects, drops and requeues requests at random, drops handles in callbacks, under locks and in
//! interrupts, and passes invalid values. A test program controls it through configfs, and does
//! I/O at the same time:
//!
//! ```text
//!     /sys/kernel/config/adversary
//!       begin     begins the scenario of a step, with the disks adv*
//!       act       does something with the scenario, selected by a number
//!       work      ends requests in the writing task
//!       end       ends the scenario; ETIMEDOUT if an object of it stays
//!       places    lists the call sites, with the number of handles dropped there
//!       leak      selects the object to leak next; reads as 0 afterwards
//!       NAME      a group whose callbacks misuse the block layer, too
//! ```
//!
//! The parameter `seed` and the number of the step determine a scenario, except for the order of
//! concurrent events.

#![forbid(unsafe_code)]

mod configfs;

mod scenario;

mod bio_scenario;

mod bios;

mod sweeper;

mod drivers;

mod requests;

mod zones;

mod transfer;

mod data;

mod memory;

mod misuse;

mod shared;

mod extremes;

mod variant;

mod call_site;

mod leak;

mod rng;

use self::configfs::{
    Controller,
    LeafGroup,
    RootGroup, //
};
use kernel::{
    configfs::Subsystem,
    module_params,
    prelude::*,
    sync::Arc, //
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

/// The number of acts in a scenario that loading begins.
const ACTS: u64 = 8;

/// The module.
struct RustBlockAdversary {
    /// [`None`] while it is unloaded.
    tree: Option<Subsystem<RootGroup>>,
    controller: Arc<Controller>,
}

/// Fails where the parameter `fail` says.
fn fail_at(site: u32) -> Result {
    if FAIL.get() == site {
        return Err(ENXIO);
    }
    Ok(())
}

impl kernel::Module for RustBlockAdversary {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let controller = Controller::new(SEED.get() as u64, WITHOUT.get());
        let controller = Arc::pin_init(controller, GFP_KERNEL)?;
        let tree = Subsystem::new(c"adversary", module, Ok(RootGroup::new(controller.clone())))?;
        let this = Self {
            tree: Some(tree),
            controller,
        };
        fail_at(1)?;
        if LEAK.get() != 0 {
            let leaf = LeafGroup::new(&this.controller);
            core::mem::forget(Subsystem::new(c"adversary_leaked", module, Ok(leaf))?);
        }
        for step in 0..u64::from(STEPS.get()) {
            // A subsystem that exists only while others look into it.
            let leaf = LeafGroup::new(&this.controller);
            let add_another = Subsystem::new(c"adversary_more", module, Ok(leaf));
            let _ = this
                .controller
                .begin((FIRST.get() as u64).wrapping_add(step));
            for number in 0..ACTS {
                let _ = this.controller.act(number);
            }
            fail_at(2)?;
            let _ = this.controller.end();
            drop(add_another);
        }
        fail_at(3)?;
        Ok(this)
    }
}

impl Drop for RustBlockAdversary {
    fn drop(&mut self) {
        // No scenario begins after this.
        self.tree = None;
        let _ = self.controller.end();
    }
}
