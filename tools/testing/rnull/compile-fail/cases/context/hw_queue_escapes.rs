// SPDX-License-Identifier: GPL-2.0

//! A hardware queue does not outlive the callback that borrowed it.

use kernel::block::mq::{HwQueue, Operations};

pub fn case<'q, T: Operations>(hw: HwQueue<'q, T>) -> &'q T::HwData {
    #[cfg(bad)]
    let _: &'static T::HwData = hw.data(); //~ ERROR lifetime may not live long enough
    hw.data()
}
