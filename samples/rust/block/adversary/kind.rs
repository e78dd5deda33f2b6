// SPDX-License-Identifier: GPL-2.0

//! What drivers differ in: the operations that only some of them have.

use kernel::{
    block::mq::{
        Operations,
        Queues,
        Started, //
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
    fn wait_in(line: &Self::Line, rq: Started<Self>) -> Result<(), Started<Self>>;

    /// Has the request wait for its own timer.
    fn wait(rq: Started<Self>, delay: Delta) -> Result<(), Started<Self>>;

    /// Lets go of the request until it times out.
    fn park(rq: Started<Self>) -> Result<(), Started<Self>>;

    /// Has the request completed elsewhere.
    fn hand_over(rq: Started<Self>) -> Result<(), Started<Self>>;

    /// Stops the queues until their timer starts them again, or does nothing.
    fn pause(queues: Queues<'_, Self>, delay: Delta);
}
