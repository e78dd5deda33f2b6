// SPDX-License-Identifier: GPL-2.0

//! Contiguous bytes of a request are used only until it ends, and only as its direction allows.

use kernel::{
    block::{
        bio::{Segments, ToDisk, Transfer},
        mq::{Operations, StartedRequest},
    },
    folio::Folio,
};

pub fn outlive<T: Operations>(rq: StartedRequest<T>, folio: &Folio) {
    if let Transfer::FromDisk(memory) = rq.transfer() {
        let bytes = memory.contiguous(512);
        #[cfg(bad)]
        rq.end(Ok(())); //~ ERROR E0505: cannot move out of `rq` because it is borrowed
        if let Some(bytes) = bytes {
            let _ = bytes.copy_from_folio(folio, 0);
        }
    }
}

pub fn read_only(memory: &Segments<'_, ToDisk>, folio: &Folio) {
    if let Some(bytes) = memory.contiguous(512) {
        #[cfg(bad)]
        let _ = bytes.copy_from_folio(folio, 0); //~ ERROR E0599: no method named `copy_from_folio` found
        let _ = bytes.copy_to_folio(folio, 0);
    }
}
