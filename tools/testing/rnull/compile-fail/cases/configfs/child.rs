// SPDX-License-Identifier: GPL-2.0

//! `mkdir` makes groups of the type that the parent names.
use kernel::{configfs::*, prelude::*};

struct Parent;
struct Child;
struct Other;

impl Group for Child {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}

impl Group for Parent {
    type Child = Child;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];

    fn make_group(&self, _name: &CStr) -> impl PinInit<Child, Error> {
        //~^ ERROR E0277: the trait bound
        #[cfg(not(bad))]
        let child = Child;
        #[cfg(bad)]
        let child = Other;
        Ok::<_, Error>(child)
    }
}

pub fn other() -> Other {
    Other
}
