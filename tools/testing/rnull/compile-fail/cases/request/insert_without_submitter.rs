// SPDX-License-Identifier: GPL-2.0

//! A request is inserted into a table with exclusive access to the submitter only.

use kernel::block::mq::{InFlight, Submitter};

pub fn case<E: InFlight>(
    #[cfg(bad)] submitter: &Submitter<E>,
    #[cfg(not(bad))] submitter: &mut Submitter<E>,
    entry: E,
) {
    if let Some(vacant) = submitter.vacant(0) {
        //~^ ERROR E0596: cannot borrow `*submitter` as mutable
        vacant.insert(entry);
    }
}
