// SPDX-License-Identifier: GPL-2.0

//! The access to a disk does not outlive the callback.

use kernel::{
    block::mq::{DiskAccess, DiskHandle, Operations},
    error::Result,
};

pub fn case<T: Operations>(handle: &DiskHandle<T>) -> Result {
    let mut kept: Option<&DiskAccess<'_, T>> = None;
    handle.access(|disk| {
        #[cfg(bad)]
        {
            kept = Some(disk); //~ ERROR E0521: borrowed data escapes outside of closure
        }
        let _ = disk;
        Ok(())
    })?;
    let _ = kept.take();
    Ok(())
}
