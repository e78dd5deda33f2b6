// SPDX-License-Identifier: GPL-2.0

//! A request that was taken over after its time gets no other timer.

use kernel::block::mq::{Operations, TimedOut, TimeoutAction};

pub fn case<'t, T: Operations>(rq: TimedOut<'t, T>) -> TimeoutAction<'t> {
    #[cfg(not(bad))]
    let taken = rq.claim();
    #[cfg(bad)]
    let taken = {
        let _ = rq.claim();
        Err::<((), _), _>(rq) //~ ERROR E0382: use of moved value
    };
    match taken {
        Ok((_, done)) => done,
        Err(rq) => rq.reset_timer(),
    }
}
