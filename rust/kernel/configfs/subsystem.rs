// SPDX-License-Identifier: GPL-2.0

//! The top-level directory of a driver in configfs.

use super::group::{
    self,
    Group, //
};
use super::node::NodeRef;
use crate::{
    bindings,
    error::to_result,
    prelude::*,
    static_lock_class, //
};

/// The name of a lock class, which must have one address. A literal would be copied to each crate
/// that uses a subsystem.
static MUTEX_NAME: &CStr = c"configfs_subsystem";

/// A directory in the root of configfs, which exists until this is dropped.
///
/// While a directory created below it exists, the module that owns it cannot be unloaded. The exit
/// of a module therefore drops this when no directory below is left. Dropping it at another time,
/// with directories below, hides it and leaves those directories (and the module) in memory
/// forever. An open attribute file does not prevent this from being dropped or the module from
/// being unloaded; reading or writing it fails with `ENOENT` then.
///
/// Files can be accessed as soon as [`Subsystem::new`] returns: make it the last step of a module's
/// initialization that can fail.
///
/// It must be neither created nor dropped in a callback of any [`Group`], below this one or not:
/// not in [`Group::make_group`] or [`Group::drop_item`], not in `show` or `store` of a file, and
/// not in the drop of the data, so that such data must not own a `Subsystem`. This is not detected.
/// Both take the lock of configfs's root, and dropping also waits for the lock of its directory and
/// for callbacks of its files that are running. But configfs creates and removes directories with
/// the parent locked. A callback that drops its own directory therefore waits for itself, and two
/// tasks that create or drop a subsystem in callbacks may deadlock. A work item can do both, if no
/// callback waits for it.
///
/// Another subsystem may hold a reference to a directory, for example to the target of a symbolic
/// link. The data and the module then stay in memory until that reference is put.
///
/// A module that leaks it, by [`mem::forget`](core::mem::forget) or in a `static`, is never freed:
/// the task that unloads it waits forever.
///
/// C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)
///
/// # Invariants
///
/// `root` is registered with `configfs_register_subsystem`.
///
/// # Examples
///
/// ```
/// use kernel::{
///     configfs::{Attribute, Group, NoChild, Subsystem},
///     module::this_module,
///     prelude::*,
/// };
///
/// struct Empty;
///
/// impl Group for Empty {
///     type Child = NoChild;
///     const ATTRIBUTES: &'static [Attribute<Self>] = &[];
/// }
///
/// # // Built-in code cannot call configfs if configfs is a module.
/// # #[cfg(CONFIG_CONFIGFS_FS = "y")]
/// {
///     let owner = this_module::<crate::LocalModule>();
///     let _first = Subsystem::new(c"rust_doctest_empty", owner, Ok(Empty))?;
///     let second = Subsystem::new(c"rust_doctest_empty", owner, Ok(Empty));
///     assert_eq!(second.err(), Some(EEXIST));
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct Subsystem<D: Group> {
    root: NodeRef<D>,
}

impl<D: Group> Subsystem<D> {
    /// Creates the directory `name` with `data` in the root of configfs.
    ///
    /// `owner` is the module that implements the directory.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the name is taken, `ENOMEM` if out of memory, `EAGAIN` while the parameters of
    /// the module are being parsed, `ENOTSUPP` in a module for a kernel without sysfs or Tasks RCU,
    /// or the error of `data` or of [`Group::default_groups`].
    pub fn new(
        name: &CStr,
        owner: &'static ThisModule,
        data: impl PinInit<D, Error>,
    ) -> Result<Self> {
        let root = group::create(name, owner, 0, data)?;
        let subsystem = root.as_subsystem();

        // SAFETY: `root` owns the subsystem.
        let mutex = unsafe { &raw mut (*subsystem).su_mutex };
        // SAFETY: `root` owns the mutex, which is pinned in memory; nothing else uses it yet.
        unsafe {
            bindings::__mutex_init(
                mutex,
                MUTEX_NAME.as_char_ptr(),
                static_lock_class!().as_ptr(),
            )
        };

        // SAFETY: The group and the mutex of `root` are initialized, and `root` keeps them alive
        // until they are unregistered.
        to_result(unsafe { bindings::configfs_register_subsystem(subsystem) })?;

        // INVARIANT: The subsystem was just registered.
        Ok(Self { root })
    }

    /// Returns the data of the directory.
    pub fn data(&self) -> &D {
        self.root.data()
    }
}

impl<D: Group> Drop for Subsystem<D> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the subsystem is registered; the reference in `root` keeps
        // its memory.
        unsafe { bindings::configfs_unregister_subsystem(self.root.as_subsystem()) };
    }
}
