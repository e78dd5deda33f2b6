// SPDX-License-Identifier: GPL-2.0

//! What a reader has found is not used after its critical section.

use kernel::{
    folio::FolioBox,
    sync::{rcu, rcu_box::RcuBox, rcu_ptr::RcuPtr},
    xarray::XArray,
};

pub fn pointer(ptr: &RcuPtr<RcuBox<u32>>) -> u32 {
    let guard = rcu::read_lock();
    let found = ptr.load(&guard).copied();
    #[cfg(bad)]
    let found = ptr.load(&guard);
    drop(guard); //~ ERROR E0505: cannot move out of `guard` because it is borrowed
    #[cfg(bad)]
    let found = found.copied();
    found.unwrap_or(0)
}

pub fn array(xa: &XArray<FolioBox>) -> usize {
    let guard = rcu::read_lock();
    let found = xa.load(&guard, 1);
    #[cfg(not(bad))]
    let size = found.map_or(0, |folio| folio.size());
    drop(guard); //~ ERROR E0505: cannot move out of `guard` because it is borrowed
    #[cfg(bad)]
    let size = found.map_or(0, |folio| folio.size());
    size
}

pub fn cursor(xa: &XArray<FolioBox>) -> usize {
    let guard = rcu::read_lock();
    let mut cursor = xa.cursor(&guard, 1);
    #[cfg(not(bad))]
    let size = cursor.next().map_or(0, |folio| folio.size());
    drop(guard); //~ ERROR E0505: cannot move out of `guard` because it is borrowed
    #[cfg(bad)]
    let size = cursor.next().map_or(0, |folio| folio.size());
    size
}
