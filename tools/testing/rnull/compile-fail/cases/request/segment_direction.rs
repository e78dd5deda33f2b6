// SPDX-License-Identifier: GPL-2.0

//! The memory of a write request cannot be written.

use kernel::block::bio::{FromDisk, Segment, ToDisk};

pub fn case(from: &Segment<'_, ToDisk>, to: &Segment<'_, FromDisk>) {
    let mut bytes = [0; 8];
    let _ = from.read(0, &mut bytes);
    let _ = to.write(0, &bytes);
    #[cfg(bad)]
    let _ = from.write(0, &bytes); //~ ERROR E0599: no method named `write` found
    #[cfg(bad)]
    let _ = to.read(0, &mut bytes); //~ ERROR E0599: no method named `read` found
}
