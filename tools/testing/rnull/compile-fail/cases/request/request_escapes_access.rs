// SPDX-License-Identifier: GPL-2.0

//! A request of a disk does not outlive the access to the disk.

//@ more errors follow from the first

use kernel::{
    block::mq::{DiskHandle, Operations, PassthroughOp},
    error::Result,
};

pub fn case<T: Operations>(handle: &DiskHandle<T>) -> Result {
    #[cfg(bad)]
    let rq = handle.access(|disk| disk.request(PassthroughOp::In))?; //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    handle.access(|disk| disk.request(PassthroughOp::In).map(drop))?;
    #[cfg(bad)]
    drop(rq);
    Ok(())
}
