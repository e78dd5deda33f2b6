// SPDX-License-Identifier: GPL-2.0

//! A zone to report does not outlive the loan of the reporter.

use kernel::block::zone::{UnreportedZone, ZoneReporter};

pub fn case<'r, 'a>(reporter: &'r mut ZoneReporter<'a>) {
    #[cfg(bad)]
    let _: Option<UnreportedZone<'static, 'a>> = reporter.next_zone(); //~ ERROR lifetime may not live long enough //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    let _: Option<UnreportedZone<'r, 'a>> = reporter.next_zone();
}
