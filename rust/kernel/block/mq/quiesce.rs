// SPDX-License-Identifier: GPL-2.0

//! A tag set whose disks dispatch no requests for a while.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    quiesce_depth::DepthChange,
    tag_set::TagSet,
    Context,
    Operations, //
};
use crate::{
    late_drop,
    prelude::*,
    sync::Arc, //
};

/// A tag set that is quiesced: no request of its disks is dispatched until this is dropped, and
/// none is being dispatched.
///
/// Requests that arrive meanwhile wait. Those that were dispatched are not affected: they can still
/// end, be requeued, or time out. Callbacks other than `queue_rq`, `queue_rqs` and `commit_rqs` may
/// run.
///
/// A tag set can be quiesced more than once; dispatch starts when the last of these is dropped. It
/// may be dropped by any task, in any context.
///
/// The removal of a disk waits for its requests, hence also until its tag set is no longer
/// quiesced, if there are any. It may also wait for the requests of another disk on the tag set, as
/// may building one. So a task must drop this first. If it is leaked, the requests wait forever,
/// and the module is never freed.
///
/// # Examples
///
/// A driver that resets its device:
///
/// ```
/// use kernel::{block::mq::{Operations, TagSet}, prelude::*, sync::Arc};
///
/// fn reset<T: Operations>(tags: &Arc<TagSet<T>>, reset: impl FnOnce()) -> Result {
///     let quiesced = tags.quiesce()?;
///     // The driver stops the device, requeues or ends the requests that it had, and enables it.
///     reset();
///     // The requests that were requeued and those that have arrived are dispatched.
///     drop(quiesced);
///     Ok(())
/// }
/// ```
///
/// # Invariants
///
/// It owns one count of the quiesce depth of `tags`.
#[must_use = "dispatch goes on when this is dropped"]
pub struct Quiesced<T: Operations> {
    tags: Arc<TagSet<T>>,
}

impl<T: Operations> TagSet<T> {
    /// Stops the dispatch of requests, and waits until callbacks that dispatch have returned. Does
    /// not wait for any request to end.
    ///
    /// A disk that is added to the tag set meanwhile is quiesced as well.
    ///
    /// # Errors
    ///
    /// `EDEADLK` where the caller cannot sleep, as in `queue_rq`; for a driver whose `queue_rq` may
    /// sleep, also in a NOIO scope. `EOVERFLOW` if the tag set is quiesced a million times already.
    pub fn quiesce(self: &Arc<Self>) -> Result<Quiesced<T>> {
        if T::Context::MAY_SLEEP {
            // The callback that this would wait for runs in such a scope.
            late_drop::check_may_wait()?;
        } else {
            late_drop::check_may_sleep()?;
        }
        if !self.change_quiesce_depth(DepthChange::Quiesce) {
            return Err(EOVERFLOW);
        }
        // INVARIANT: The depth was just increased.
        let quiesced = Quiesced { tags: self.clone() };
        self.wait_for_callbacks();
        Ok(quiesced)
    }
}

impl<T: Operations> Quiesced<T> {
    /// Returns the tag set.
    pub fn tag_set(&self) -> &Arc<TagSet<T>> {
        &self.tags
    }
}

impl<T: Operations> Drop for Quiesced<T> {
    fn drop(&mut self) {
        // By the type invariant, this was counted.
        self.tags.change_quiesce_depth(DepthChange::Unquiesce);
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
mod tests;
