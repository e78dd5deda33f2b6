// SPDX-License-Identifier: GPL-2.0

//! The callbacks of an attribute capture nothing: they remain as long as the attribute.

use kernel::{
    device_class::Attribute,
    prelude::*, //
};

pub fn attribute(value: u32) -> Attribute<u32> {
    #[cfg(bad)]
    let show =
        move |_: &u32, page: &mut kernel::attribute_text::Page<'_>| writeln!(page, "{value}");
    #[cfg(not(bad))]
    let show = |value: &u32, page: &mut kernel::attribute_text::Page<'_>| writeln!(page, "{value}");
    let _ = value;
    Attribute::ro(c"value", show) //~ ERROR E0308: mismatched types
}
