// SPDX-License-Identifier: GPL-2.0

//! The dispatch of requests to the queue pairs, which stops while a controller is reset.

use super::{
    io_queue::Io,
    link::Dispatch, //
};
use kernel::{
    block::mq::{
        Quiesced,
        TagSet, //
    },
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// The dispatch of the requests of all disks of a controller.
#[pin_data]
pub(crate) struct IoDispatch {
    #[pin]
    quiesced: Mutex<Option<Quiesced<Io>>>,
    tags: Arc<TagSet<Io>>,
}

impl IoDispatch {
    pub(crate) fn new(tags: Arc<TagSet<Io>>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                quiesced <- new_mutex!(None),
                tags,
            }),
            GFP_KERNEL,
        )
    }
}

impl Dispatch for IoDispatch {
    fn quiesce(&self) {
        let mut quiesced = self.quiesced.lock();
        if quiesced.is_none() {
            // If this is not possible, the queue pairs reject requests, which are sent again.
            *quiesced = self.tags.quiesce().ok();
        }
    }

    fn unquiesce(&self) {
        let quiesced = self.quiesced.lock().take();
        drop(quiesced);
    }
}
