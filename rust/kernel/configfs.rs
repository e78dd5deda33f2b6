// SPDX-License-Identifier: GPL-2.0

//! configfs interface: directories of attribute files that user space creates.
//!
//! A driver describes a kind of directory by implementing [`Group`] for the type of its data: which
//! [`Attribute`] files the directory has, what mkdir in it creates, and what rmdir in it does.
//! [`Subsystem`] registers such a directory in the root of configfs until it is dropped.
//!
//! ```text
//!     Subsystem<Shelf>            /sys/kernel/config/shelf
//!       Shelf: Group            features              Attribute::ro
//!         Book: Group           mkdir novel           Shelf::make_group
//!                                     novel/pages         Attribute::rw
//!                                   rmdir novel           Shelf::drop_item, then Book is dropped
//! ```
//!
//! All callbacks run in the context of the task that reads, writes, creates or removes, and may
//! sleep. Attributes are read and written concurrently, so the data must be `Send + Sync`.
//! `make_group` and `drop_item` of a subsystem exclude each other.
//!
//! Not supported: symbolic links, binary attributes, items that are not groups.
//!
//! C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     configfs::{Attribute, Group, NoChild, Page, Subsystem},
//!     module::this_module,
//!     prelude::*,
//!     sync::atomic::{Atomic, Relaxed},
//! };
//!
//! struct Shelf;
//!
//! struct Book {
//!     pages: Atomic<u32>,
//! }
//!
//! impl Group for Shelf {
//!     type Child = Book;
//!     const ATTRIBUTES: &'static [Attribute<Self>] =
//!         &[Attribute::ro(c"features", Shelf::features)];
//!
//!     fn make_group(&self, name: &CStr) -> impl PinInit<Book, Error> {
//!         if name == c"dune" {
//!             return Err(EEXIST);
//!         }
//!         Ok(Book { pages: Atomic::new(0) })
//!     }
//! }
//!
//! impl Shelf {
//!     fn features(&self, page: &mut Page<'_>) -> Result {
//!         for attribute in Book::ATTRIBUTES {
//!             writeln!(page, "{}", attribute.name().to_str()?)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! impl Group for Book {
//!     type Child = NoChild;
//!     const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::rw(
//!         c"pages",
//!         |book: &Book, page| writeln!(page, "{}", book.pages.load(Relaxed)),
//!         |book: &Book, text| text.kstrtouint(0).map(|pages| book.pages.store(pages, Relaxed)),
//!     )];
//! }
//!
//! # // Built-in code cannot call configfs if configfs is a module.
//! # #[cfg(CONFIG_CONFIGFS_FS = "y")]
//! {
//!     let owner = this_module::<crate::LocalModule>();
//!     let shelf = Subsystem::new(c"rust_doctest_shelf", owner, Ok(Shelf))?;
//!     // The directory exists until `shelf` is dropped.
//! #   drop(shelf);
//! }
//! # Ok::<(), Error>(())
//! ```

mod subsystem;

mod group;

mod attribute;

mod node;

pub use self::{
    attribute::Attribute,
    group::{
        DefaultGroups,
        Group,
        NoChild, //
    },
    subsystem::Subsystem, //
};
pub use crate::attribute_text::{
    Page,
    Text, //
};
