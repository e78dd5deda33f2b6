// SPDX-License-Identifier: GPL-2.0

//! The batch that `poll` borrows does not outlive the call, not even if another batch replaces
//! it.

use kernel::block::mq::{IoCompletionBatch, Operations};

pub fn case<T: Operations>(
    lent: &mut IoCompletionBatch<'_, T>,
    kept: &mut Option<IoCompletionBatch<'static, T>>,
) {
    #[cfg(bad)]
    kept.replace(core::mem::take(lent)); //~ ERROR borrowed data escapes outside of function
    #[cfg(not(bad))]
    drop((core::mem::take(lent), kept.take()));
}
