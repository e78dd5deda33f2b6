// SPDX-License-Identifier: GPL-2.0

//! The top directory of a driver in configfs.

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

/// A directory in the root of configfs, there until this is dropped.
///
/// While a directory made below it exists, the module that owns it cannot be removed. A module
/// therefore sees this dropped when nothing below is left. Dropping it at another time, with
/// directories below, takes it out of sight and leaves those directories (and the module) in memory
/// for good. An attribute file that is open keeps neither; what is read or written then fails with
/// `ENOENT`.
///
/// Files are usable as soon as [`Subsystem::new`] returns: make it the last step of a module's
/// initialization that can fail.
///
/// It must be neither made nor dropped in a callback of a [`Group`], be it below this one or
/// another: not in [`Group::make_group`] or [`Group::drop_item`], not in `show` or `store`
/// of a file, and not in the drop of the data, so that such data must not own a `Subsystem`.
/// Nothing detects it. Both take the lock of configfs's root, and the drop also waits for the lock
/// of its directory, and for what its files are doing. But configfs makes and removes directories
/// with the one above locked. So a drop by a callback of its own directory waits for itself, and
/// two tasks that make or drop a subsystem in callbacks may wait for each other, without end. A
/// work item can do both, if no callback waits for it.
///
/// Another subsystem may have a reference to a directory, as to the target of one of its symbolic
/// links. Then the data, and the module, is there until that is given back.
///
/// A module that leaks it, by [`mem::forget`](core::mem::forget) or in a `static`, is never gone:
/// the task that unloads it waits for ever.
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
/// # // What is built in cannot call configfs if that is a module.
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
    /// Makes the directory `name` in the root of configfs, with `data` behind it.
    ///
    /// `owner` is the module whose code serves the directory.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the name is taken, `ENOMEM`, `EAGAIN` while the parameters of the module are
    /// being parsed, `ENOTSUPP` in a module for a kernel without sysfs, or the error of `data` or
    /// of [`Group::default_groups`].
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
                c"configfs_subsystem".as_char_ptr(),
                static_lock_class!().as_ptr(),
            )
        };

        // SAFETY: The group and the mutex of `root` are initialized, and `root` keeps them alive
        // until they are unregistered.
        to_result(unsafe { bindings::configfs_register_subsystem(subsystem) })?;

        // INVARIANT: Registered just now.
        Ok(Self { root })
    }

    /// Returns the data behind the directory.
    pub fn data(&self) -> &D {
        self.root.data()
    }
}

impl<D: Group> Drop for Subsystem<D> {
    fn drop(&mut self) {
        // SAFETY: Registered, by the type invariant; the memory stays, by the reference in `root`.
        unsafe { bindings::configfs_unregister_subsystem(self.root.as_subsystem()) };
    }
}
