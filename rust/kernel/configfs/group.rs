// SPDX-License-Identifier: GPL-2.0

//! The trait that describes a kind of directory.

use super::attribute::Attribute;
use super::node::{
    Node,
    NodeRef,
    Table,
    ITEM_OPERATIONS, //
};
use crate::{
    bindings,
    fault::Fault,
    module_pin::ModulePin,
    prelude::*, //
};
use core::{
    marker::PhantomData,
    mem::offset_of, //
};

/// The data of a directory, with the operations on it.
///
/// The data is pinned, shared by all callbacks, and dropped when the directory is removed and the
/// last callback on it has returned.
///
/// C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)
///
/// # Examples
///
/// ```
/// use kernel::{
///     configfs::{Attribute, DefaultGroups, Group, NoChild},
///     prelude::*,
/// };
///
/// struct Port(u32);
/// struct Ports;
///
/// impl Group for Port {
///     type Child = NoChild;
///     const ATTRIBUTES: &'static [Attribute<Self>] =
///         &[Attribute::ro(c"number", |port: &Port, page| writeln!(page, "{}", port.0))];
/// }
///
/// // Two directories that are created with their parent; mkdir fails with `EPERM`.
/// impl Group for Ports {
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
pub trait Group: Sized + Send + Sync + 'static {
    /// The directories that mkdir creates in this one; [`NoChild`] if mkdir is not supported.
    type Child: Group;

    /// The attributes of the directory.
    const ATTRIBUTES: &'static [Attribute<Self>];

    /// Called on mkdir of `name`: returns an initializer for the data of the new directory.
    ///
    /// That can be a `Result` with the data, or a `try_pin_init!`. mkdir fails with its error,
    /// which is `EPERM` by default. This is not called for a name that exists in this directory.
    /// While the module is still being initialized, mkdir fails with `EAGAIN`. If configfs cannot
    /// complete the new directory, it calls [`Group::drop_item`].
    fn make_group(&self, _name: &CStr) -> impl PinInit<Self::Child, Error> {
        Err::<Self::Child, Error>(EPERM)
    }

    /// Called on rmdir of `child`: the directory is not visible any more, none of its files is
    /// being read or written, and none will be, even if still open.
    ///
    /// The data is dropped afterwards.
    fn drop_item(&self, _child: &Self::Child) {}

    /// Adds the directories that are created and removed with this one.
    ///
    /// If this fails, this directory is not created.
    fn default_groups(&self, _groups: &mut DefaultGroups<'_>) -> Result {
        Ok(())
    }
}

/// The [`Group::Child`] of a directory in which mkdir is not supported.
pub enum NoChild {}

impl Group for NoChild {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}

/// The default groups of a directory, to be added by [`Group::default_groups`].
///
/// # Invariants
///
/// `parent` points to an initialized group that is not yet visible in configfs and is not used
/// elsewhere for `'a`.
pub struct DefaultGroups<'a> {
    parent: *mut bindings::config_group,
    owner: &'static ThisModule,
    /// The nesting depth of `parent`: the number of directories above it that are created with it.
    level: usize,
    // Invariant in `'a`, so that two of these cannot be swapped.
    _borrow: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl DefaultGroups<'_> {
    /// The maximum nesting depth of default groups.
    ///
    /// configfs creates and removes them recursively, and holds the lock of each level meanwhile.
    pub const MOST_LEVELS: usize = 8;

    /// Returns the nesting depth of a directory that is added here.
    fn next_level(&self) -> Result<usize> {
        if self.level < Self::MOST_LEVELS {
            Ok(self.level + 1)
        } else {
            Err(EINVAL)
        }
    }

    /// Adds the directory `name` with `data`.
    ///
    /// # Errors
    ///
    /// `EEXIST` if a directory of that name was added before, `EINVAL` if it would be nested more
    /// than [`Self::MOST_LEVELS`] deep, `ENOMEM` if out of memory, or the error of `data`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     configfs::{Attribute, DefaultGroups, Group, NoChild},
    ///     prelude::*,
    /// };
    ///
    /// struct Twin;
    /// struct Twins;
    ///
    /// impl Group for Twin {
    ///     type Child = NoChild;
    ///     const ATTRIBUTES: &'static [Attribute<Self>] = &[];
    /// }
    ///
    /// impl Group for Twins {
    ///     type Child = NoChild;
    ///     const ATTRIBUTES: &'static [Attribute<Self>] = &[];
    ///
    ///     fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
    ///         groups.add(c"left", Ok(Twin))?;
    ///         groups.add(c"right", Ok(Twin))?;
    ///         groups.add(c"left", Ok(Twin))
    ///     }
    /// }
    /// # use kernel::{configfs::Subsystem, module::this_module};
    /// # #[cfg(CONFIG_CONFIGFS_FS = "y")]
    /// # {
    ///
    /// # let owner = this_module::<crate::LocalModule>();
    /// let twins = Subsystem::new(c"rust_doctest_twins", owner, Ok(Twins));
    /// assert_eq!(twins.err(), Some(EEXIST));
    /// # }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Directories that are nested to a given depth:
    ///
    /// ```
    /// use kernel::{
    ///     configfs::{Attribute, DefaultGroups, Group, NoChild},
    ///     prelude::*,
    /// };
    ///
    /// struct Nest(usize);
    ///
    /// impl Group for Nest {
    ///     type Child = NoChild;
    ///     const ATTRIBUTES: &'static [Attribute<Self>] = &[];
    ///
    ///     fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
    ///         match self.0.checked_sub(1) {
    ///             Some(more) => groups.add(c"nest", Ok(Nest(more))),
    ///             None => Ok(()),
    ///         }
    ///     }
    /// }
    /// # use kernel::{configfs::Subsystem, module::this_module};
    /// # #[cfg(CONFIG_CONFIGFS_FS = "y")]
    /// # {
    ///
    /// # let owner = this_module::<crate::LocalModule>();
    /// const MOST: usize = DefaultGroups::MOST_LEVELS;
    /// drop(Subsystem::new(c"rust_doctest_nest", owner, Ok(Nest(MOST)))?);
    /// let nest = Subsystem::new(c"rust_doctest_nest", owner, Ok(Nest(60)));
    /// assert_eq!(nest.err(), Some(EINVAL));
    /// # }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn add<D: Group>(&mut self, name: &CStr, data: impl PinInit<D, Error>) -> Result {
        let level = self.next_level()?;
        let group = create(name, self.owner, level, data)?.into_group();

        // SAFETY: `group` is new, so it is in no list, and `into_group` returned a reference.
        unsafe { self.link(group) }
    }

    /// Adds the directory of `fault`, with the files that configure when the fault happens.
    ///
    /// Without `CONFIG_FAULT_INJECTION_CONFIGFS` this does nothing.
    ///
    /// # Errors
    ///
    /// `EBUSY` if this was called for it before, `EEXIST` if a directory of its name was added,
    /// `EINVAL` if it would be nested more than [`Self::MOST_LEVELS`] deep.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     configfs::{Attribute, DefaultGroups, Group, NoChild},
    ///     fault::{Fault, FaultSettings},
    ///     prelude::*,
    /// };
    ///
    /// struct Port {
    ///     broken: Fault,
    /// }
    ///
    /// impl Group for Port {
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
            self.next_level()?;
            let group = fault.take_group().ok_or(EBUSY)?;
            // SAFETY: No other caller got the group, so it is in no list, and it comes with a
            // reference.
            unsafe { self.link(group) }
        }
        #[cfg(not(CONFIG_FAULT_INJECTION_CONFIGFS))]
        {
            let _ = fault;
            Ok(())
        }
    }

    /// Returns whether a directory of that name was added.
    ///
    /// C does not check this: it would create two directories, one of which cannot be reached.
    fn has(&self, name: &CStr) -> bool {
        // SAFETY: By the type invariant, the group is initialized.
        let head = unsafe { &raw mut (*self.parent).default_groups };
        // SAFETY: As above.
        let mut entry = unsafe { (*head).next };
        while entry != head {
            // Only `link` adds to the list.
            let group = entry
                .wrapping_byte_sub(offset_of!(bindings::config_group, group_entry))
                .cast::<bindings::config_group>();
            // SAFETY: The list owns a reference to each group.
            let added = unsafe { (*group).cg_item.ci_name };
            // SAFETY: A group has a name before it is added, and keeps it.
            let added = unsafe { CStr::from_char_ptr(added) };
            if added == name {
                return true;
            }
            // SAFETY: As above.
            entry = unsafe { (*entry).next };
        }
        false
    }

    /// Adds `group`.
    ///
    /// # Errors
    ///
    /// `EEXIST` if a directory of that name was added before. The reference is put then.
    ///
    /// # Safety
    ///
    /// `group` is valid, has a name, is in no list, and the caller passes ownership of a reference
    /// to it.
    // Inlined, so that the kernel crate does not call configfs, which may be a module.
    #[inline]
    unsafe fn link(&mut self, group: *mut bindings::config_group) -> Result {
        // SAFETY: By the safety requirement.
        let item = unsafe { &raw mut (*group).cg_item };
        // SAFETY: By the safety requirement.
        let name = unsafe { (*item).ci_name };
        // SAFETY: By the safety requirement; the name is valid until the reference is put.
        let name = unsafe { CStr::from_char_ptr(name) };
        if self.has(name) {
            // SAFETY: By the safety requirement, the reference is ours, and it is not used after
            // this.
            unsafe { bindings::config_item_put(item) };
            return Err(EEXIST);
        }
        // SAFETY: By the safety requirement.
        let entry = unsafe { &raw mut (*group).group_entry };
        // SAFETY: By the type invariant.
        let list = unsafe { &raw mut (*self.parent).default_groups };
        // SAFETY: By the safety requirement, `entry` is in no list; `parent` is initialized and
        // exclusively ours by the type invariant. The list now owns the reference, which
        // `Node::free` puts.
        unsafe { bindings::list_add_tail(entry, list) };
        Ok(())
    }
}

/// Creates a directory that is not visible yet, with a nesting depth of `level`.
pub(super) fn create<D: Group>(
    name: &CStr,
    owner: &'static ThisModule,
    level: usize,
    data: impl PinInit<D, Error>,
) -> Result<NodeRef<D>> {
    let pin = ModulePin::new(owner)?;
    let table = Table::new(
        owner,
        D::ATTRIBUTES.iter().map(Attribute::to_raw),
        &ITEM_OPERATIONS,
        GroupCallbacks::<D>::OPERATIONS,
    )?;
    // SAFETY: The table was created for `D`.
    let node = unsafe { NodeRef::new(name, pin, table, data) }?;

    // INVARIANT: The group is initialized and not visible yet.
    let mut groups = DefaultGroups {
        parent: node.as_group(),
        owner,
        level,
        _borrow: PhantomData,
    };
    node.data().default_groups(&mut groups)?;
    Ok(node)
}

/// The C callbacks that create and remove directories in a `D`.
struct GroupCallbacks<D>(PhantomData<D>);

impl<D: Group> GroupCallbacks<D> {
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
            create(name, node.owner(), 0, node.data().make_group(name))
        };
        match child() {
            Ok(child) => child.into_group(),
            Err(error) => error.to_ptr(),
        }
    }

    /// # Safety
    ///
    /// `parent` must be the group in a live `Node<D>`, `item` the item in a live `Node<D::Child>`
    /// that `make_group` returned, and ownership of the reference from there passes to this
    /// function.
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
