// SPDX-License-Identifier: GPL-2.0

//! A reference to a timed-out request does not outlive the callback.

use kernel::block::mq::{Operations, TimedOutRequest};

pub fn case<'t, T: Operations>(rq: &'t TimedOutRequest<'t, T>) -> &'t T::RequestData {
    #[cfg(bad)]
    let _: &'static T::RequestData = rq.data(); //~ ERROR lifetime may not live long enough
    rq.data()
}
