// SPDX-License-Identifier: GPL-2.0

//! The timer of a request is not reset by means of another one.

use kernel::block::mq::{Operations, TimedOutRequest, TimeoutAction};

pub fn case<'t, 'other, T: Operations>(
    rq: TimedOutRequest<'t, T>,
    other: TimedOutRequest<'other, T>,
) -> TimeoutAction<'t> {
    #[cfg(bad)]
    return other.reset_timer(); //~ ERROR lifetime may not live long enough //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    {
        drop(other);
        rq.reset_timer()
    }
}
