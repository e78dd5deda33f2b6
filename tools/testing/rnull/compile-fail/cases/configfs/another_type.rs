// SPDX-License-Identifier: GPL-2.0

//! An attribute for one type of data cannot be listed by a group with another type.
use kernel::{configfs::*, prelude::*};

struct Good;
struct Other;

const OTHER: Attribute<Other> = Attribute::ro(c"other", |_: &Other, page| writeln!(page, "other"));

impl Group for Good {
    type Child = NoChild;
    #[cfg(not(bad))]
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
    #[cfg(bad)]
    const ATTRIBUTES: &'static [Attribute<Self>] = &[OTHER]; //~ ERROR E0308: mismatched types
}
