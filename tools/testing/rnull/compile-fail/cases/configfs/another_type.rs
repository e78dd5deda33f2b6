// SPDX-License-Identifier: GPL-2.0

//! An attribute of one type of data is of no use to another.
use kernel::{configfs::*, prelude::*};

struct Good;
struct Other;

const OTHER: Attribute<Other> = Attribute::ro(c"other", |_: &Other, page| writeln!(page, "other"));

impl Directory for Good {
    type Child = NoChild;
    #[cfg(not(bad))]
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
    #[cfg(bad)]
    const ATTRIBUTES: &'static [Attribute<Self>] = &[OTHER]; //~ ERROR E0308: mismatched types
}
