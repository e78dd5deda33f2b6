// SPDX-License-Identifier: GPL-2.0

//! Requests that a driver executes without waiting for their end.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    passthrough::Passthrough,
    Context,
    Operations, //
};
use crate::{
    bindings,
    late_drop,
    prelude::*, //
};
use core::mem::ManuallyDrop;

impl<T: Operations> Passthrough<'_, T> {
    /// Passes the request to the driver, and does not wait: C's `blk_execute_rq_nowait()`.
    ///
    /// It comes before the requests that wait in its hardware queue. If `queue_rq` must not sleep,
    /// it may be called before this returns. The request is freed when the driver has ended it. The
    /// result is the driver's, which has the completion: nothing else sees the status.
    ///
    /// To drop the queue waits for the request, as for any other. A timeout handler may use this,
    /// together with [`try_request`](super::PassthroughQueue::try_request), to send a command that
    /// aborts another one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request has a buffer, which nothing would free; `EDEADLK` in a context that
    /// cannot sleep. The request is dropped then.
    ///
    /// A `queue_rq` that must not sleep is such a context: it would be called from within itself.
    /// A kernel without `CONFIG_PREEMPT_COUNT` cannot tell the context, so a driver with such a
    /// `queue_rq` gets `EDEADLK` everywhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::mq::*, prelude::*, sync::atomic::{Atomic, Relaxed}};
    ///
    /// /// Asks a device to abort a command.
    /// fn abort<T>(queue: &PassthroughQueue<T>, command: u64) -> Result
    /// where
    ///     T: Operations<RequestData = Atomic<u64>>,
    /// {
    ///     let rq = queue.try_request(PassthroughOp::In)?;
    ///     rq.data().store(command, Relaxed);
    ///     rq.execute_nowait()
    /// }
    /// ```
    pub fn execute_nowait(self) -> Result {
        if self.rq.buffer.is_some() {
            return Err(EINVAL);
        }
        late_drop::check_may_sleep()?;
        // If a callback could do this, the number of calls within each other would be limited by
        // that of tags only.
        if !T::Context::MAY_SLEEP && !cfg!(CONFIG_PREEMPT_COUNT) {
            return Err(EDEADLK);
        }
        let owned = ManuallyDrop::new(self.rq);
        let rq = owned.request().as_raw();
        // SAFETY: The request is valid, and so is its queue.
        let queue = unsafe { (*rq).q };
        // C looks at the hardware queue after another CPU may have ended the request. It stays
        // while the queue is in use, which cannot be frozen then.
        //
        // SAFETY: The request is a use of the queue, so this is not the first one.
        unsafe { bindings::blk_get_usage(queue) };
        // At the head, because otherwise C would add it to the plug of the task, which may just be
        // being flushed.
        //
        // SAFETY: By the type invariant of `OwnedRequest`, the request is not started, and has no
        // bio, as there is no buffer. It is not used again, and is freed when it has ended. Until
        // then the queue is not destroyed: its drop waits for that. The use that was added keeps
        // the hardware queues until this returns.
        unsafe { bindings::blk_execute_nowait(rq) };
        // SAFETY: The queue was valid above, and is not destroyed while this has its use.
        unsafe { bindings::blk_unuse_queue(queue) };
        Ok(())
    }
}

// Without a preemption count, such a request is refused.
#[cfg(all(CONFIG_RUST_KUNIT_TESTS, CONFIG_PREEMPT_COUNT))]
mod tests;
