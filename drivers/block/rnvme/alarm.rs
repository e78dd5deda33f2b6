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

/// Asks for a reset of a controller that has failed. A task that holds the lock of the device
/// resets it.
pub(crate) trait ResetRequest: Send + Sync {
    /// Does not wait for that.
    fn request(&self);
}

/// Why a controller is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Reason {
    /// It has sent too many identifiers of no command.
    StrayCompletions = 1,
    /// It says that an internal error persists.
    PersistentError = 2,
}

impl Reason {
    /// Says what has happened.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::StrayCompletions => "too many completions had an identifier of no command",
            Self::PersistentError => "the controller reports an internal error that persists",
        }
    }
}

/// Whether a handler wants the controller to be reset.
pub(crate) struct Alarm {
    /// A [`Reason`], or 0.
    reason: Atomic<u32>,
    reset: Arc<dyn ResetRequest>,
}

impl Alarm {
    pub(crate) fn new(reset: Arc<dyn ResetRequest>) -> Result<Arc<Self>> {
        let this = Self {
            reason: Atomic::new(0),
            reset,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Has the controller reset. Never sleeps.
    pub(crate) fn raise(&self, reason: Reason) {
        self.reason.store(reason as u32, Relaxed);
        self.reset.request();
    }

    /// Has the controller reset, which is stopped already. Never sleeps.
    pub(crate) fn request_reset(&self) {
        self.reset.request();
    }

    /// Returns why the alarm was raised since the last call, if it was.
    pub(crate) fn take(&self) -> Option<Reason> {
        match self.reason.xchg(0, Relaxed) {
            1 => Some(Reason::StrayCompletions),
            2 => Some(Reason::PersistentError),
            _ => None,
        }
    }
}
