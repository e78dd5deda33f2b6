// SPDX-License-Identifier: GPL-2.0

//! A folio has one owner, who has what links the folio to others.

use kernel::{
    folio::{Folio, FolioBox},
    prelude::*,
    xarray::XArray,
};

pub fn clone(folio: &FolioBox) -> usize {
    #[cfg(bad)]
    let folio: FolioBox = folio.clone(); //~ ERROR E0308: mismatched types
    folio.size()
}

pub fn twice(xa: &XArray<FolioBox>, folio: FolioBox) -> Result {
    xa.insert(1, folio, GFP_KERNEL)?;
    #[cfg(bad)]
    xa.insert(2, folio, GFP_KERNEL)?; //~ ERROR E0382: use of moved value: `folio`
    Ok(())
}

pub fn outlives(folio: FolioBox) -> usize {
    let borrowed: &Folio = &folio;
    #[cfg(not(bad))]
    let size = borrowed.size();
    drop(folio); //~ ERROR E0505: cannot move out of `folio` because it is borrowed
    #[cfg(bad)]
    let size = borrowed.size();
    size
}
