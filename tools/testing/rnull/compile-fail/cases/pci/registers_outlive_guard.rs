// SPDX-License-Identifier: GPL-2.0

//! Registers are not accessible after the RCU read-side critical section.

use kernel::{
    io::Io,
    pci::bar::BoundBar,
    prelude::*,
    sync::rcu, //
};

pub fn write(bar: &BoundBar) -> Result {
    let guard = rcu::read_lock();
    let registers = bar.access(&guard).ok_or(ENODEV)?;
    #[cfg(bad)]
    drop(guard); //~ ERROR E0505: cannot move out of `guard` because it is borrowed
    registers.try_write32(1, 0)
}
