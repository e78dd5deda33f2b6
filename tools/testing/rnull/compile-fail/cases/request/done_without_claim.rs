// SPDX-License-Identifier: GPL-2.0

//! A request that is not taken over goes on having a timer.

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
