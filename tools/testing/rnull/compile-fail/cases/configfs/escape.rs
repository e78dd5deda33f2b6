// SPDX-License-Identifier: GPL-2.0

//! What a callback borrows does not outlive the callback.
use kernel::{configfs::*, prelude::*};

struct Data(u32);

#[cfg(bad)]
fn keep_data(data: &Data) -> &'static u32 {
    &data.0 //~ ERROR lifetime may not live long enough
}

#[cfg(bad)]
fn keep_text(text: &Text) -> &'static CStr {
    text //~ ERROR lifetime may not live long enough
}

impl Group for Data {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::wo(c"data", |data: &Data, text| {
            #[cfg(bad)]
            let _ = (keep_data(data), keep_text(text));
            let _ = (data.0, text);
            Ok(())
        })];
}
