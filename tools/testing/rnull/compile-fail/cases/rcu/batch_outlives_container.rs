// SPDX-License-Identifier: GPL-2.0

//! A batch does not outlive the containers that its values were in, also when it is only dropped.

use kernel::{
    folio::FolioBox,
    prelude::*,
    sync::{rcu_free::RcuBatch, rcu_ptr::RcuPtr},
};

pub fn drop_both(folio: FolioBox) -> Result {
    #[cfg(bad)]
    let mut batch = RcuBatch::new();
    let ptr = RcuPtr::new(Some(folio))?;
    #[cfg(not(bad))]
    let mut batch = RcuBatch::new();
    batch.extend(ptr.replace(None)); //~ ERROR E0597: `ptr` does not live long enough
    Ok(())
}
