// SPDX-License-Identifier: GPL-2.0

//! The timeout of a request cannot be restarted on behalf of another.

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
