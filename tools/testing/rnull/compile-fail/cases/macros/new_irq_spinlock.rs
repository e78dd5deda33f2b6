// SPDX-License-Identifier: GPL-2.0

//! new_irq_spinlock! puts nothing of its caller inside `unsafe`.

//@ macro: new_irq_spinlock

use kernel::{
    irqsave::{new_irq_spinlock, IrqSpinLock},
    prelude::*,
};

#[cfg(bad)]
unsafe fn needs_care() -> u32 {
    1
}

pub fn case() -> impl PinInit<IrqSpinLock<u32>> {
    #[cfg(bad)]
    return new_irq_spinlock!(needs_care()); //~ ERROR E0133: call to unsafe function `needs_care` is unsafe
    #[cfg(not(bad))]
    new_irq_spinlock!(1)
}
