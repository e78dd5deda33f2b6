// SPDX-License-Identifier: GPL-2.0

//! The alarm of an interrupt handler, which cannot reset a controller itself.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// Asks a task that holds the lock of the device to reset the controller if that has failed.
pub(crate) trait ResetRequest: Send + Sync {
    /// Does not wait for that.
    fn request(&self);
}

/// Whether a handler wants the controller to be reset.
pub(crate) struct Alarm {
    is_raised: Atomic<bool>,
    reset: Arc<dyn ResetRequest>,
}

impl Alarm {
    pub(crate) fn new(reset: Arc<dyn ResetRequest>) -> Result<Arc<Self>> {
        let this = Self {
            is_raised: Atomic::new(false),
            reset,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Has the controller reset. Never sleeps.
    pub(crate) fn raise(&self) {
        self.is_raised.store(true, Relaxed);
        self.reset.request();
    }

    /// Has the controller looked at, which was stopped.
    pub(crate) fn request_reset(&self) {
        self.reset.request();
    }

    /// Returns whether the alarm was raised since the last call.
    pub(crate) fn take(&self) -> bool {
        let is_raised = self.is_raised.load(Relaxed);
        if is_raised {
            self.is_raised.store(false, Relaxed);
        }
        is_raised
    }
}
