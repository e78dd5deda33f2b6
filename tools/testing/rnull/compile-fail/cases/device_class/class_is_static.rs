// SPDX-License-Identifier: GPL-2.0

//! A class remains where it is, as C has its address.

use kernel::{
    device_class::{
        Class,
        Registration, //
    },
    prelude::*, //
};

static STATIC: Class = Class::new(c"case", 0);

pub fn register(module: &'static ThisModule) -> Result<Registration> {
    let class = Class::new(c"case", 0);
    #[cfg(bad)]
    return Registration::new(&class, module); //~ ERROR E0597: `class` does not live long enough
    #[cfg(not(bad))]
    {
        let _ = class;
        Registration::new(&STATIC, module)
    }
}
