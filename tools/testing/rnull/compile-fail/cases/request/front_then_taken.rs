// SPDX-License-Identifier: GPL-2.0

//! A request in a list is not taken from it while somebody looks at it.

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
