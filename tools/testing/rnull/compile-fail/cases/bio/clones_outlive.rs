// SPDX-License-Identifier: GPL-2.0

//! A bio that is served by clones can be ended only by them.

use kernel::{
    block::{
        bdev::BdevFile,
        bio_based::{Operations, OwnedBio},
        Sector, Sectors,
    },
    prelude::*,
};

pub fn case<T: Operations>(bio: OwnedBio<T>, lower: &BdevFile) -> Result {
    #[cfg(bad)]
    let transfer = bio.transfer();
    let mut clones = bio.into_clones(); //~ ERROR E0505: cannot move out of `bio` because it is borrowed
    clones.submit(Sectors::ZERO..Sectors(1), lower, Sector(0))?;
    clones.end(Ok(()));
    #[cfg(bad)]
    drop(transfer);
    #[cfg(bad)]
    clones.submit(Sectors::ZERO..Sectors(1), lower, Sector(0))?; //~ ERROR E0382: borrow of moved value: `clones`
    #[cfg(bad)]
    bio.end(Ok(())); //~ ERROR E0382: use of moved value: `bio`
    Ok(())
}
