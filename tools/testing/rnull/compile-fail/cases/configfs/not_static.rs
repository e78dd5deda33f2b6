// SPDX-License-Identifier: GPL-2.0

//! The data of a group cannot borrow from its creator, because the group may live longer.
use kernel::{configfs::*, prelude::*};

struct Data<'a>(&'a u32);

impl Data<'_> {
    fn show(&self, page: &mut Page<'_>) -> Result {
        writeln!(page, "{}", self.0)
    }
}

#[cfg(not(bad))]
pub const FILE: Attribute<Data<'static>> = Attribute::ro(c"data", Data::show);
#[cfg(bad)]
pub fn file<'a>() -> Attribute<Data<'a>> {
    Attribute::ro(c"data", Data::show) //~ ERROR lifetime may not live long enough
}
