// SPDX-License-Identifier: GPL-2.0

//! What drivers differ in: the operations that only some of them have.

use kernel::{
    block::mq::{
        Operations,
        RequestQueue,
        StartedRequest, //
    },
    prelude::*,
    time::Delta, //
};

/// A driver, with those ways of a request that not every driver has.
///
/// Each gives back the request if the driver lacks what it needs.
pub(crate) trait Kind: Operations {
    /// The name of the driver in the kernel log.
    const NAME: &'static str;

    /// The data of a disk that belongs to no scene.
    fn orphan() -> Self::QueueData;

    /// An owner of a delay line, or nothing.
    type Line: Clone + Send + Sync + Unpin + 'static;

    /// Makes a delay line.
    fn line(delay: Delta) -> Result<Self::Line>;

    /// Has the request wait in a line.
    fn wait_in(line: &Self::Line, rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>>;

    /// Has the request wait for its own timer.
    fn wait(rq: StartedRequest<Self>, delay: Delta) -> Result<(), StartedRequest<Self>>;

    /// Lets go of the request until it times out.
    fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>>;

    /// Has the request completed elsewhere.
    fn hand_over(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>>;

    /// Stops the queues until their timer starts them again, or does nothing.
    fn pause(queues: RequestQueue<'_, Self>, delay: Delta);
}
