// SPDX-License-Identifier: GPL-2.0

//! Taking one request does not permit `BLK_EH_DONE` for another.

use kernel::block::mq::{Operations, TimedOutRequest, TimeoutAction};

pub fn case<'t, 'other, T: Operations>(
    rq: TimedOutRequest<'t, T>,
    other: TimedOutRequest<'other, T>,
) -> TimeoutAction<'t> {
    match other.try_take() {
        #[cfg(bad)]
        Ok((_, done)) => return done, //~ ERROR lifetime may not live long enough //~ ERROR lifetime may not live long enough
        #[cfg(not(bad))]
        Ok(_) => (),
        Err(_) => (),
    }
    rq.reset_timer()
}
