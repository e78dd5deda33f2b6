// SPDX-License-Identifier: GPL-2.0

//! A request without a timer cannot be delayed.

use kernel::{
    block::mq::{NoTimer, Operations, StartedRequest, Timer},
    time::Delta,
};

#[cfg(bad)]
pub fn without<T: Operations<Timer = NoTimer>>(rq: StartedRequest<T>) {
    rq.delay(Delta::from_micros(10)); //~ ERROR E0599: the method `delay` exists for struct `StartedRequest<T>`, but its trait bounds
}

pub fn with<T: Operations<Timer = Timer>>(rq: StartedRequest<T>) {
    rq.delay(Delta::from_micros(10));
}

pub fn named(_: NoTimer) {}
