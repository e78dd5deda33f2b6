// SPDX-License-Identifier: GPL-2.0

//! `BLK_EH_DONE` cannot be returned for a request that was not taken.

use kernel::block::mq::{Operations, TimedOutRequest, TimeoutAction};

pub fn case<'t, T: Operations>(rq: TimedOutRequest<'t, T>) -> TimeoutAction<'t> {
    match rq.try_take() {
        Ok((_, done)) => done,
        #[cfg(not(bad))]
        Err(rq) => rq.reset_timer(),
        #[cfg(bad)]
        Err(_) => TimeoutAction::DONE, //~ ERROR E0599: no associated item named `DONE` found
    }
}
