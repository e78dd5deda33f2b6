// SPDX-License-Identifier: GPL-2.0

//! A driver has one zone to report at a time, so the order is that of the disk.

use kernel::{
    block::zone::{ZoneInfo, ZoneReporter},
    prelude::*,
};

pub fn case(reporter: &mut ZoneReporter<'_>, info: &ZoneInfo) -> Result {
    let first = reporter.next_zone().ok_or(EINVAL)?;
    #[cfg(not(bad))]
    first.report(info)?;
    let second = reporter.next_zone().ok_or(EINVAL)?; //~ ERROR E0499: cannot borrow `*reporter` as mutable
    second.report(info)?;
    #[cfg(bad)]
    first.report(info)?;
    Ok(())
}
