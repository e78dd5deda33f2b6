// SPDX-License-Identifier: GPL-2.0

//! A reporter is used by the task that it is lent to.

use kernel::block::zone::{ZoneInfo, ZoneReporter};

fn is_send<T: Send>() {}

pub fn case() {
    is_send::<ZoneInfo>();
    #[cfg(bad)]
    is_send::<ZoneReporter<'static>>(); //~ ERROR E0277 //~ ERROR E0277
}
