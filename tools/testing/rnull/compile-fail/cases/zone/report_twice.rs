// SPDX-License-Identifier: GPL-2.0

//! A zone cannot be reported twice.

use kernel::{
    block::zone::{UnreportedZone, ZoneInfo},
    prelude::*,
};

pub fn case(zone: UnreportedZone<'_, '_>, info: &ZoneInfo) -> Result {
    zone.report(info)?;
    #[cfg(bad)]
    zone.report(info)?; //~ ERROR E0382: use of moved value: `zone`
    Ok(())
}
