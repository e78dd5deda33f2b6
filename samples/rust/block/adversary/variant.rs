// SPDX-License-Identifier: GPL-2.0

//! The differences between drivers, which are the optional operations.

use kernel::{
    block::mq::{
        Operations,
        RequestQueue,
        StartedRequest, //
    },
    prelude::*,
    time::Delta, //
};

/// A driver, with wrappers of the methods that need optional operations.
///
/// Each wrapper returns the request if the driver lacks the operation.
pub(crate) trait Variant: Operations {
    /// The name of the driver in the kernel log.
    const NAME: &'static str;

    /// Returns the data of a disk that belongs to no scenario.
    fn orphan_data() -> Self::QueueData;

    /// A reference to a delay queue, or nothing.
    type Delay: Clone + Send + Sync + Unpin + 'static;

    /// Creates a delay queue.
    fn delay_queue(delay: Delta) -> Result<Self::Delay>;

    /// Puts the request in a delay queue.
    fn push_delayed(
        delay_queue: &Self::Delay,
        rq: StartedRequest<Self>,
    ) -> Result<(), StartedRequest<Self>>;

    /// Starts the timer of the request.
    fn wait(rq: StartedRequest<Self>, delay: Delta) -> Result<(), StartedRequest<Self>>;

    /// Leaves the request in flight until it times out.
    fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>>;

    /// Has `Operations::complete` called with the request.
    fn raise_completion(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>>;

    /// Stops the queues until their timer starts them. Without a timer, starts them at once.
    fn pause(queues: RequestQueue<'_, Self>, delay: Delta);
}
