// SPDX-License-Identifier: GPL-2.0

//! What was found under the lock is not used without it, nor after it may have been removed.

use kernel::{
    prelude::*,
    xarray::{Locked, XArray},
};

type Values = XArray<KBox<u32>, Locked>;

pub fn unlocked(xa: &Values) -> Option<u32> {
    let guard = xa.lock();
    let value = guard.get(1)?;
    #[cfg(not(bad))]
    let value = *value;
    drop(guard); //~ ERROR E0505: cannot move out of `guard` because it is borrowed
    #[cfg(bad)]
    let value = *value;
    Some(value)
}

pub fn removed(xa: &Values) -> Option<u32> {
    let mut guard = xa.lock();
    let mut cursor = guard.cursor(1);
    #[cfg(not(bad))]
    let value = *cursor.next()?;
    guard.remove(1); //~ ERROR E0502: cannot borrow `guard` as mutable because it is also borrowed as immutable
    #[cfg(bad)]
    let value = *cursor.next()?;
    Some(value)
}

pub fn twice(xa: &Values) -> Option<u32> {
    let mut guard = xa.lock();
    let one = guard.get_mut(1)?;
    #[cfg(not(bad))]
    let one = *one;
    let two = guard.get_mut(1)?; //~ ERROR E0499: cannot borrow `guard` as mutable more than once at a time
    *two = 3;
    #[cfg(bad)]
    let one = *one;
    Some(one)
}
