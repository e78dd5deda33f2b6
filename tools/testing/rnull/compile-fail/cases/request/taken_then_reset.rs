// SPDX-License-Identifier: GPL-2.0

//! The timeout of a request that was taken cannot be restarted.

use kernel::block::mq::{Operations, TimedOutRequest, TimeoutAction};

pub fn case<'t, T: Operations>(rq: TimedOutRequest<'t, T>) -> TimeoutAction<'t> {
    #[cfg(not(bad))]
    let taken = rq.try_take();
    #[cfg(bad)]
    let taken = {
        let _ = rq.try_take();
        Err::<((), _), _>(rq) //~ ERROR E0382: use of moved value
    };
    match taken {
        Ok((_, done)) => done,
        Err(rq) => rq.reset_timer(),
    }
}
