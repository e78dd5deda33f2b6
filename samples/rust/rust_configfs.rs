// SPDX-License-Identifier: GPL-2.0

//! A tree of directories in configfs.
//!
//! ```text
//!     /sys/kernel/config/rust_configfs     Configuration: mkdir makes a Child
//!       message                            read only
//!       bar                                holds a short text
//!       NAME                               Child: mkdir makes a GrandChild
//!         baz                              holds a number
//!         info                             a GrandChild that comes with each Child
//!         NAME                             GrandChild
//!           gc                             write only, a number
//! ```

#![forbid(unsafe_code)]

use kernel::{
    configfs::{
        Attribute,
        DefaultGroups,
        Group,
        NoChild,
        Page,
        Subsystem,
        Text, //
    },
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
};

module! {
    type: RustConfigfs,
    name: "rust_configfs",
    authors: ["rnull contributors"],
    description: "Rust configfs sample",
    license: "GPL",
}

/// The directory exists while the module is loaded.
struct RustConfigfs {
    _configuration: Subsystem<Configuration>,
}

impl kernel::Module for RustConfigfs {
    fn init(module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            _configuration: Subsystem::new(c"rust_configfs", module, Configuration::new())?,
        })
    }
}

/// The data behind the top directory.
#[pin_data]
struct Configuration {
    #[pin]
    bar: Mutex<CString>,
}

impl Configuration {
    fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            bar <- new_mutex!(c"".to_cstring()?),
        })
    }

    fn show_message(&self, page: &mut Page<'_>) -> Result {
        writeln!(page, "Hello World")
    }

    fn show_bar(&self, page: &mut Page<'_>) -> Result {
        write!(page, "{}", self.bar.lock().to_str()?)
    }

    fn store_bar(&self, text: &Text) -> Result {
        *self.bar.lock() = text.to_cstring()?;
        Ok(())
    }
}

impl Group for Configuration {
    type Child = Child;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        Attribute::ro(c"message", Self::show_message),
        Attribute::rw(c"bar", Self::show_bar, Self::store_bar),
    ];

    fn make_group(&self, name: &CStr) -> impl PinInit<Child, Error> {
        if name == c"forbidden" {
            return Err(EACCES);
        }
        Ok(Child::default())
    }

    fn drop_item(&self, child: &Child) {
        pr_info!(
            "removing a child whose baz is {}\n",
            child.baz.load(Relaxed)
        );
    }
}

/// The data behind a directory made in the top directory.
struct Child {
    baz: Atomic<u32>,
}

impl Default for Child {
    fn default() -> Self {
        Self {
            baz: Atomic::new(0),
        }
    }
}

impl Child {
    fn show_baz(&self, page: &mut Page<'_>) -> Result {
        writeln!(page, "{}", self.baz.load(Relaxed))
    }

    fn store_baz(&self, text: &Text) -> Result {
        self.baz.store(text.kstrtouint(0)?, Relaxed);
        Ok(())
    }
}

impl Group for Child {
    type Child = GrandChild;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::rw(c"baz", Self::show_baz, Self::store_baz)];

    fn make_group(&self, _name: &CStr) -> impl PinInit<GrandChild, Error> {
        Ok(GrandChild)
    }

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        groups.add(c"info", Ok(GrandChild))
    }
}

/// The data behind a directory at the end of the tree.
struct GrandChild;

impl Group for GrandChild {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::wo(c"gc", |_child, text| {
        text.kstrtoull(0)
            .map(|number| pr_info!("grandchild got {number}\n"))
    })];
}

impl Drop for GrandChild {
    fn drop(&mut self) {
        pr_info!("grandchild is gone\n");
    }
}
