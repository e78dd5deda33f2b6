// SPDX-License-Identifier: GPL-2.0

//! A blocking driver cannot use the tag set of a nonblocking one.

use kernel::{
    block::{
        gendisk::GenDiskBuilder,
        mq::{Blocking, NonBlocking, Operations, TagSet},
    },
    prelude::*,
    sync::{Arc, LockClassKey},
};

pub fn case<S: Operations<Context = Blocking>, A: Operations<Context = NonBlocking>>(
    its_own: Arc<TagSet<S>>,
    another: Arc<TagSet<A>>,
    class: Pin<&'static LockClassKey>,
) {
    #[cfg(bad)]
    let tag_set = another;
    #[cfg(not(bad))]
    let tag_set = (its_own, another).0;
    let _ = GenDiskBuilder::<S>::new(tag_set, class); //~ ERROR E0308: mismatched types
}
