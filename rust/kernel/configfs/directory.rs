// SPDX-License-Identifier: GPL-2.0

//! What a driver says about one kind of directory.

use super::attribute::Attribute;
use super::node::{
    Node,
    NodeRef,
    ITEM_OPERATIONS, //
};
use super::table::Table;
use crate::{
    bindings,
    fault::Fault,
    module_pin::ModulePin,
    prelude::*, //
};
use core::marker::PhantomData;

/// The data behind a directory, along with what can be done in it.
///
/// The data is pinned, shared by all callbacks, and dropped when the directory is gone and the last
/// callback on it has returned.
///
/// C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)
///
/// # Examples
///
/// ```
/// use kernel::{
///     configfs::{Attribute, DefaultGroups, Directory, NoChild},
///     prelude::*,
/// };
///
/// struct Port(u32);
/// struct Ports;
///
/// impl Directory for Port {
///     type Child = NoChild;
///     const ATTRIBUTES: &'static [Attribute<Self>] =
///         &[Attribute::ro(c"number", |port: &Port, page| writeln!(page, "{}", port.0))];
/// }
///
/// // Two directories that come with their parent; mkdir is refused with `EPERM`.
/// impl Directory for Ports {
///     type Child = NoChild;
///     const ATTRIBUTES: &'static [Attribute<Self>] = &[];
///
///     fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
///         groups.add(c"left", Ok(Port(0)))?;
///         groups.add(c"right", Ok(Port(1)))
///     }
/// }
/// # use kernel::{configfs::Subsystem, module::this_module};
/// # #[cfg(CONFIG_CONFIGFS_FS = "y")]
/// # drop(Subsystem::new(c"rust_doctest_ports", this_module::<crate::LocalModule>(), Ok(Ports))?);
/// # Ok::<(), Error>(())
/// ```
pub trait Directory: Sized + Send + Sync + 'static {
    /// The directories that mkdir makes in this one; [`NoChild`] if it makes none.
    type Child: Directory;

    /// The files in the directory.
    const ATTRIBUTES: &'static [Attribute<Self>];

    /// Serves a mkdir of `name`: returns what initializes the data of the new directory.
    ///
    /// That can be a `Result` with the data, or a `try_pin_init!`. Its error is what mkdir returns;
    /// without an implementation that is `EPERM`. Names that exist in this directory do not get
    /// here. While the module is still being initialized, mkdir fails with `EAGAIN`. If configfs
    /// cannot finish the new directory, [`Directory::drop_item`] follows.
    fn make_group(&self, _name: &CStr) -> impl PinInit<Self::Child, Error> {
        Err::<Self::Child, Error>(EPERM)
    }

    /// Serves a rmdir: the directory of `child` is out of sight, none of its files is being read or
    /// written, and none will be, even if still open.
    ///
    /// The data is dropped afterwards.
    fn drop_item(&self, _child: &Self::Child) {}

    /// Adds the directories that come and go with this one.
    ///
    /// An error makes the making of this directory fail.
    fn default_groups(&self, _groups: &mut DefaultGroups<'_>) -> Result {
        Ok(())
    }
}

/// The [`Directory::Child`] of a directory in which nothing can be made.
pub enum NoChild {}

impl Directory for NoChild {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}

/// Where [`Directory::default_groups`] puts its directories.
///
/// # Invariants
///
/// `parent` points to an initialized group that is not yet visible in configfs and is used by
/// nobody else for `'a`.
pub struct DefaultGroups<'a> {
    parent: *mut bindings::config_group,
    owner: &'static ThisModule,
    // Invariant in `'a`, so that two of these cannot be swapped.
    _borrow: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl DefaultGroups<'_> {
    /// Adds the directory `name` with `data` behind it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of `data`. A name used twice makes the making of the parent fail.
    pub fn add<D: Directory>(&mut self, name: &CStr, data: impl PinInit<D, Error>) -> Result {
        let group = create(name, self.owner, data)?.into_group();

        // SAFETY: `group` is new, hence in no list, and `into_group` returned a reference.
        unsafe { self.link(group) };
        Ok(())
    }

    /// Adds the directory of `fault`, with the files in which the user says when it happens.
    ///
    /// Without `CONFIG_FAULT_INJECTION_CONFIGFS` this does nothing.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it was added before.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     configfs::{Attribute, DefaultGroups, Directory, NoChild},
    ///     fault::{Fault, FaultSettings},
    ///     prelude::*,
    /// };
    ///
    /// struct Port {
    ///     broken: Fault,
    /// }
    ///
    /// impl Directory for Port {
    ///     type Child = NoChild;
    ///     const ATTRIBUTES: &'static [Attribute<Self>] = &[];
    ///
    ///     fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
    ///         groups.add_fault(&self.broken)
    ///     }
    /// }
    /// # use kernel::{configfs::Subsystem, module::this_module};
    /// # #[cfg(CONFIG_CONFIGFS_FS = "y")]
    /// # {
    ///
    /// let broken = Fault::new(c"broken_wire_between_ports", &FaultSettings::default())?;
    /// # let owner = this_module::<crate::LocalModule>();
    /// # let ports =
    /// Subsystem::new(c"rust_doctest_faults", owner, Ok(Port { broken }))?;
    /// # assert!(!ports.data().broken.should_fail());
    /// # }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn add_fault(&mut self, fault: &Fault) -> Result {
        #[cfg(CONFIG_FAULT_INJECTION_CONFIGFS)]
        {
            let group = fault.take_group().ok_or(EBUSY)?;
            // SAFETY: Nobody else got the group, so it is in no list, and it came with a reference.
            unsafe { self.link(group) };
        }
        #[cfg(not(CONFIG_FAULT_INJECTION_CONFIGFS))]
        let _ = fault;
        Ok(())
    }

    /// # Safety
    ///
    /// `group` is valid, in no list, and the caller gives up a reference to it.
    unsafe fn link(&mut self, group: *mut bindings::config_group) {
        // SAFETY: By the safety requirement.
        let entry = unsafe { &raw mut (*group).group_entry };
        // SAFETY: By the type invariant.
        let list = unsafe { &raw mut (*self.parent).default_groups };
        // SAFETY: By the safety requirement, `entry` is in no list; `parent` is initialized and
        // exclusively ours by the type invariant. The list now owns the reference, which is given
        // back in `Node::free`.
        unsafe { bindings::list_add_tail(entry, list) };
    }
}

/// Makes a directory that is not visible yet.
pub(super) fn create<D: Directory>(
    name: &CStr,
    owner: &'static ThisModule,
    data: impl PinInit<D, Error>,
) -> Result<NodeRef<D>> {
    let pin = ModulePin::new(owner)?;
    let table = Table::new(
        owner,
        D::ATTRIBUTES.iter().map(Attribute::to_raw),
        &ITEM_OPERATIONS,
        GroupCallbacks::<D>::OPERATIONS,
    )?;
    // SAFETY: The table is made for `D`.
    let node = unsafe { NodeRef::new(name, pin, table, data) }?;

    // INVARIANT: The group is initialized and seen by nobody else.
    let mut groups = DefaultGroups {
        parent: node.as_group(),
        owner,
        _borrow: PhantomData,
    };
    node.data().default_groups(&mut groups)?;
    Ok(node)
}

/// The C callbacks for making and removing directories in a `D`.
struct GroupCallbacks<D>(PhantomData<D>);

impl<D: Directory> GroupCallbacks<D> {
    const OPERATIONS: &'static bindings::configfs_group_operations =
        &bindings::configfs_group_operations {
            make_group: Some(Self::make_group),
            drop_item: Some(Self::drop_item),
            make_item: None,
            disconnect_notify: None,
            is_visible: None,
            is_bin_visible: None,
        };

    /// # Safety
    ///
    /// `parent` must be the group in a live `Node<D>`, `name` a NUL-terminated string.
    unsafe extern "C" fn make_group(
        parent: *mut bindings::config_group,
        name: *const c_char,
    ) -> *mut bindings::config_group {
        // SAFETY: By the safety requirements, for the duration of the call.
        let node = unsafe { Node::<D>::from_group(parent) };
        // SAFETY: As above.
        let name = unsafe { CStr::from_char_ptr(name) };

        let child = || {
            if !node.owner_is_live() {
                return Err(EAGAIN);
            }
            create(name, node.owner(), node.data().make_group(name))
        };
        match child() {
            Ok(child) => child.into_group(),
            Err(error) => error.to_ptr(),
        }
    }

    /// # Safety
    ///
    /// `parent` must be the group in a live `Node<D>`, `item` the item in a live `Node<D::Child>`
    /// that `make_group` returned, whose reference from there becomes this function's.
    unsafe extern "C" fn drop_item(
        parent: *mut bindings::config_group,
        item: *mut bindings::config_item,
    ) {
        // SAFETY: By the safety requirements, for the duration of the call.
        let node = unsafe { Node::<D>::from_group(parent) };
        // SAFETY: By the safety requirements, including the ownership of the reference.
        let child = unsafe { NodeRef::<D::Child>::from_item(item) };

        node.data().drop_item(child.data());
    }
}
