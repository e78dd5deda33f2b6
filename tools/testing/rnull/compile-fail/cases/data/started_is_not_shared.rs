// SPDX-License-Identifier: GPL-2.0

//! A started request cannot be shared among tasks.

use kernel::block::mq::{Operations, StartedRequest};

fn sent<T: Send>(_: &T) {}
#[cfg(bad)]
fn shared<T: Sync>(_: &T) {}

pub fn case<T: Operations>(rq: StartedRequest<T>) {
    sent(&rq);
    #[cfg(bad)]
    shared(&rq); //~ ERROR E0277: `NonNull<kernel::block::mq::Request<T>>` cannot be shared
    rq.end(Ok(()));
}
