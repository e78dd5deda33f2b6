// SPDX-License-Identifier: GPL-2.0

//! A request is removed from a table with exclusive access to the completer only.

use kernel::block::mq::{Completer, InFlight};

pub fn case<E: InFlight>(
    #[cfg(bad)] completer: &Completer<E>,
    #[cfg(not(bad))] completer: &mut Completer<E>,
) -> Option<E> {
    completer.take(0) //~ ERROR E0596: cannot borrow `*completer` as mutable
}
