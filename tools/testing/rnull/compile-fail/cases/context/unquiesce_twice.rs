// SPDX-License-Identifier: GPL-2.0

//! A tag set is quiesced as often as there are guards, which cannot be copied.

use kernel::block::mq::{Operations, Quiesced};

pub fn case<T: Operations>(quiesced: Quiesced<T>) {
    drop(quiesced);
    #[cfg(bad)]
    drop(quiesced); //~ ERROR E0382: use of moved value: `quiesced`
}
