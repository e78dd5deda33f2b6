// SPDX-License-Identifier: GPL-2.0

//! A reservation does not outlive its array, and is filled once.

use kernel::{
    prelude::*,
    static_lock_class,
    xarray::{Locked, XArray},
};

pub fn outlives() -> Result {
    let xa = XArray::<KBox<u32>, Locked>::new(c"case", static_lock_class!());
    let xa = KBox::pin_init(xa, GFP_KERNEL)?;
    let place = xa.reserve(1, GFP_KERNEL)?;
    #[cfg(not(bad))]
    drop(place);
    drop(xa); //~ ERROR E0505: cannot move out of `xa` because it is borrowed
    #[cfg(bad)]
    drop(place);
    Ok(())
}

pub fn twice(xa: &XArray<KBox<u32>, Locked>) -> Result {
    let place = xa.reserve(1, GFP_KERNEL)?;
    place.fill(KBox::new(1, GFP_KERNEL)?);
    #[cfg(bad)]
    place.fill(KBox::new(2, GFP_KERNEL)?); //~ ERROR E0382: use of moved value: `place`
    Ok(())
}
