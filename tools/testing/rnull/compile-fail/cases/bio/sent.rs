// SPDX-License-Identifier: GPL-2.0

//! A bio that was not kept cannot be sent to another task.

use kernel::block::bio_based::{Operations, SubmittedBio};

fn sent<S: Send>(_: S) {}

pub fn case<T: Operations>(bio: SubmittedBio<'_, T>) {
    #[cfg(bad)]
    sent(bio); //~ ERROR E0277: `NonNull<kernel::bindings::bio>` cannot be sent between threads safely
               //~^ ERROR E0277: `*mut T` cannot be sent between threads safely
    #[cfg(not(bad))]
    sent(bio.keep());
}
