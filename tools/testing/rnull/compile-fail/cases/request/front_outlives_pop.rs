// SPDX-License-Identifier: GPL-2.0

//! A reference to the front of a list does not outlive its removal from the list.

use kernel::block::{
    mq::{Operations, RequestList},
    Sector,
};

pub fn case<T: Operations>(list: &mut RequestList<T>) -> Option<Sector> {
    let first = list.front()?;
    #[cfg(bad)]
    drop(list.pop_front()); //~ ERROR E0502: cannot borrow `*list` as mutable
    let sector = first.sector();
    drop(list.pop_front());
    Some(sector)
}
