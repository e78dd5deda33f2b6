// SPDX-License-Identifier: GPL-2.0

//! A request cannot be used after `delay`.

use kernel::{
    block::mq::{Operations, StartedRequest, Timer},
    time::Delta,
};

pub fn case<T: Operations<Timer = Timer>>(rq: StartedRequest<T>) {
    rq.delay(Delta::from_micros(10));
    #[cfg(bad)]
    rq.end(Ok(())); //~ ERROR E0382: use of moved value: `rq`
}
