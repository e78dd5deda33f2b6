// SPDX-License-Identifier: GPL-2.0

//! There is one vacant entry of a table at a time, so none is filled twice.

use kernel::block::mq::{InFlight, Submitter};

pub fn case<E: InFlight>(submitter: &mut Submitter<E>, entry: E) {
    let Some(first) = submitter.vacant(0) else {
        return;
    };
    #[cfg(bad)]
    let _second = submitter.vacant(0); //~ ERROR E0499: cannot borrow `*submitter` as mutable more than once
    first.insert(entry);
}
