// SPDX-License-Identifier: GPL-2.0

//! A vacant entry of a table is filled once.

use kernel::block::mq::{InFlight, VacantEntry};

pub fn case<E: InFlight>(vacant: VacantEntry<'_, E>, first: E, second: E) {
    vacant.insert(first);
    #[cfg(bad)]
    vacant.insert(second); //~ ERROR E0382: use of moved value: `vacant`
    #[cfg(not(bad))]
    drop(second);
}
