// SPDX-License-Identifier: GPL-2.0

//! The directories that mkdir makes are of the type that their parent names.
use kernel::{configfs::*, prelude::*};

struct Parent;
struct Child;
struct Other;

impl Directory for Child {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}

impl Directory for Parent {
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
