// SPDX-License-Identifier: GPL-2.0

//! The private data of a folio has no destructor, which nothing would call.
//@ link
//@ elsewhere: ::FITS` failed

use kernel::{folio::FolioBox, prelude::*};

#[cfg(bad)]
type Private = KBox<u32>;
#[cfg(not(bad))]
type Private = &'static u32;

pub fn make(private: Private) -> Result<FolioBox<Private>> {
    FolioBox::new(0, GFP_KERNEL, private)
}
