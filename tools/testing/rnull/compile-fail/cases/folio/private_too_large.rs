// SPDX-License-Identifier: GPL-2.0

//! The private data of a folio fits into a word.
//@ link
//@ elsewhere: ::FITS` failed

use kernel::{folio::FolioBox, prelude::*};

#[cfg(bad)]
type Private = [usize; 2];
#[cfg(not(bad))]
type Private = [u8; 8];

pub fn make(private: Private) -> Result<FolioBox<Private>> {
    FolioBox::new(0, GFP_KERNEL, private)
}
