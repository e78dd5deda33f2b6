// SPDX-License-Identifier: GPL-2.0

//! The data of a handler is not accessible after the interrupt was enabled again.

use kernel::{
    irq::exclusive::{
        Exclusive,
        Handler, //
    },
    prelude::*,
};

pub fn take<H: Handler>(handler: &Exclusive<H>) -> Result {
    #[cfg(bad)]
    let _data = handler.with_masked(|data| data)?; //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    handler.with_masked(|_data| ())?;
    Ok(())
}
