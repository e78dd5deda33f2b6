// SPDX-License-Identifier: GPL-2.0

//! Only a request that has a timer can be delayed.

use kernel::{
    block::mq::{NoTimer, Operations, Started, Timer},
    time::Delta,
};

#[cfg(bad)]
pub fn without<T: Operations<Timer = NoTimer>>(rq: Started<T>) {
    rq.delay(Delta::from_micros(10)); //~ ERROR E0599: the method `delay` exists for struct `Started<T>`, but its trait bounds
}

pub fn with<T: Operations<Timer = Timer>>(rq: Started<T>) {
    rq.delay(Delta::from_micros(10));
}

pub fn named(_: NoTimer) {}
