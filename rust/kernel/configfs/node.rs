// SPDX-License-Identifier: GPL-2.0

//! The memory of a directory: the C group with the driver's data next to it.

use crate::{
    bindings,
    error::to_result,
    late_drop::MAX_SIZE,
    module_pin::ModulePin,
    prelude::*,
    types::Opaque, //
};
use core::{
    mem::offset_of,
    ptr::NonNull, //
};

/// A directory in memory.
///
/// Root directories and others have the same layout: every node includes the mutex of a subsystem,
/// which only roots use. The data is therefore found from the C item in the same way for all
/// directories.
///
/// # Invariants
///
/// * `head.c.su_group` is initialized, has a name, and its type is that of `table`, which describes
///   a directory with data `D`.
/// * It is in a `KBox` that belongs to the reference count of `head.c.su_group.cg_item`.
#[pin_data]
pub(super) struct Node<D> {
    #[pin]
    head: Head,
    table: Table,
    #[pin]
    data: D,
}

/// The part of a node that does not depend on the type of its data.
///
/// # Invariants
///
/// It is the head of a `Node<D>`, and `free` is `Node::<D>::free`.
#[pin_data]
struct Head {
    #[pin]
    c: Opaque<bindings::configfs_subsystem>,
    /// Another subsystem may hold a reference to the node when the module is unloaded.
    pin: Option<ModulePin>,
    free: unsafe fn(*mut Head),
}

/// The item operations in the [`Table`] of every node.
pub(super) static ITEM_OPERATIONS: bindings::configfs_item_operations =
    bindings::configfs_item_operations {
        release: Some(Head::release),
        allow_link: None,
        drop_link: None,
    };

impl Head {
    /// Returns the C group in this node.
    fn as_group(&self) -> *mut bindings::config_group {
        // SAFETY: The projection stays within `c`.
        unsafe { &raw mut (*self.c.get()).su_group }
    }

    /// # Safety
    ///
    /// `item` must be in the head of a node.
    unsafe fn container_of(item: *mut bindings::config_item) -> *mut Self {
        const ITEM: usize = offset_of!(bindings::configfs_subsystem, su_group.cg_item);
        // SAFETY: By the safety requirements, the item is in a `c`.
        let c = unsafe { item.byte_sub(ITEM) };
        // SAFETY: By the safety requirements, that is in a head.
        unsafe { c.byte_sub(offset_of!(Self, c)) }.cast()
    }

    /// Frees a node when its last reference is put.
    ///
    /// This may be after its module was unloaded, since other subsystems can hold a reference:
    /// creating a symbolic link to the directory takes one. The pin of the node keeps the module's
    /// code in memory. This function is not generic, since generic code is part of the module that
    /// uses it: where this file is built in, the task has left the module's code when the pin is
    /// dropped. (Where this file is part of the module, nothing protects the last instructions of
    /// this function.)
    ///
    /// # Safety
    ///
    /// `item` must be in the head of a node that is not used after this call.
    #[inline(never)]
    unsafe extern "C" fn release(item: *mut bindings::config_item) {
        // SAFETY: By the safety requirements.
        let head = unsafe { Self::container_of(item) };
        // SAFETY: By the safety requirements, no other task uses the node.
        let pin = unsafe { (*head).pin.take() };
        // SAFETY: As above.
        let free = unsafe { (*head).free };
        // SAFETY: By the type invariants, `free` is that of the node, which is not used any more.
        unsafe { free(head) };
        drop(pin);
    }
}

impl<D> Node<D> {
    /// Returns the C group in this node.
    fn as_group(&self) -> *mut bindings::config_group {
        self.head.as_group()
    }

    /// Returns the C item in this node.
    fn as_item(&self) -> *mut bindings::config_item {
        // SAFETY: The projection stays within the group.
        unsafe { &raw mut (*self.as_group()).cg_item }
    }

    /// Returns the node that contains `item`.
    ///
    /// # Safety
    ///
    /// `item` must be in a node with data `D`, which must live for `'a`.
    pub(super) unsafe fn from_item<'a>(item: *mut bindings::config_item) -> &'a Self {
        // SAFETY: By the safety requirements.
        let node = unsafe { Self::container_of(item) };
        // SAFETY: By the safety requirements, it lives for `'a`, and is only shared.
        unsafe { &*node }
    }

    /// Returns the node that contains `group`.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_item`].
    pub(super) unsafe fn from_group<'a>(group: *mut bindings::config_group) -> &'a Self {
        // SAFETY: By the safety requirements, `group` is within a node.
        let item = unsafe { &raw mut (*group).cg_item };
        // SAFETY: By the safety requirements.
        unsafe { Self::from_item(item) }
    }

    /// # Safety
    ///
    /// `item` must be in a node with data `D`.
    unsafe fn container_of(item: *mut bindings::config_item) -> *mut Self {
        // SAFETY: By the safety requirements.
        let head = unsafe { Head::container_of(item) };
        // SAFETY: By the safety requirements, it is the head of such a node.
        unsafe { Self::of_head(head) }
    }

    /// Returns the node that contains `head`.
    ///
    /// # Safety
    ///
    /// `head` must be that of a node with data `D`.
    unsafe fn of_head(head: *mut Head) -> *mut Self {
        // SAFETY: By the safety requirements, the result is in the same allocation.
        unsafe { head.byte_sub(offset_of!(Self, head)) }.cast()
    }

    /// Returns the driver's data.
    pub(super) fn data(&self) -> &D {
        &self.data
    }

    /// Returns the module that owns this directory.
    pub(super) fn owner(&self) -> &'static ThisModule {
        self.table.owner()
    }

    /// Returns whether the initialization of that module has succeeded.
    ///
    /// A directory that is created earlier would outlive a module whose initialization fails.
    pub(super) fn owner_is_live(&self) -> bool {
        let module = self.owner().as_ptr();

        if module.is_null() {
            return true;
        }
        // SAFETY: A module is loaded while its code runs, as it does here.
        let state = unsafe { &raw const (*module).state };
        // SAFETY: As above. The loader may change the state concurrently, so the read is volatile,
        // as `READ_ONCE` is in C.
        let state = unsafe { state.read_volatile() };
        state == bindings::module_state_MODULE_STATE_LIVE
    }

    /// Frees a node.
    ///
    /// # Safety
    ///
    /// `head` must be that of a node with data `D` that is not used after this call.
    unsafe fn free(head: *mut Head) {
        // SAFETY: By the safety requirements.
        let node = unsafe { Self::of_head(head) };
        // SAFETY: By the safety requirements.
        let group = unsafe { (*head).as_group() };
        // SAFETY: The group is initialized, by the type invariant; its default groups were unlinked
        // before, since a linked one holds a reference to this node.
        unsafe { bindings::configfs_remove_default_groups(group) };
        // SAFETY: By the type invariant, nodes are in a `KBox`, and this was the last reference.
        // The value does not move when the box is recreated, and is dropped in place.
        drop(unsafe { KBox::from_raw(node) });
    }
}

/// A reference to a node.
///
/// # Invariants
///
/// It owns a reference count in the node's `ci_kref`.
pub(super) struct NodeRef<D>(NonNull<Node<D>>);

// SAFETY: A reference gives access to `&D` and may drop `D`, from any task.
unsafe impl<D: Send + Sync> Send for NodeRef<D> {}

// SAFETY: A shared reference gives access to `&D` only.
unsafe impl<D: Send + Sync> Sync for NodeRef<D> {}

impl<D> NodeRef<D> {
    /// Creates a node and returns the first reference to it; `pin` keeps the module of `D`.
    ///
    /// # Safety
    ///
    /// `table` must be created for `D`: with attributes of `D`, callbacks for groups with data `D`,
    /// and [`ITEM_OPERATIONS`].
    pub(super) unsafe fn new(
        name: &CStr,
        pin: ModulePin,
        table: Table,
        data: impl PinInit<D, Error>,
    ) -> Result<Self> {
        const_assert!(size_of::<Node<D>>() <= MAX_SIZE);
        let node = KBox::pin_init(
            try_pin_init!(Node {
                // INVARIANT: `free` is that of this node.
                head <- pin_init!(Head {
                    c <- Opaque::ffi_init(|c: *mut bindings::configfs_subsystem| {
                        // SAFETY: `c` is valid for writes.
                        unsafe { c.write_bytes(0, 1) }
                    }),
                    pin: Some(pin),
                    free: Node::<D>::free,
                }),
                table,
                data <- data,
            }? Error),
            GFP_KERNEL,
        )?;
        let group = node.as_group();

        // SAFETY: The item is zeroed, which means that it has no name yet; both strings are
        // NUL-terminated, and the format takes one string.
        to_result(unsafe {
            bindings::config_item_set_name(node.as_item(), c"%s".as_char_ptr(), name.as_char_ptr())
        })?;
        // SAFETY: The group is not used elsewhere. Its type is in the same node, so it stays in
        // place for as long as the group exists.
        unsafe { (*group).cg_item.ci_type = node.table.as_ptr() };
        // SAFETY: As above.
        unsafe { bindings::config_group_init(group) };

        // INVARIANT: Name, type, lists and reference count are set; the count is one, for the
        // reference that is returned.
        // SAFETY: A `NodeRef` never moves its node.
        let node = KBox::into_raw(unsafe { Pin::into_inner_unchecked(node) });
        // SAFETY: `KBox::into_raw` never returns null.
        Ok(Self(unsafe { NonNull::new_unchecked(node) }))
    }

    /// Takes ownership of a reference to the node that contains `item`.
    ///
    /// # Safety
    ///
    /// `item` must be in a node with data `D`, and the caller must pass ownership of a reference to
    /// it.
    pub(super) unsafe fn from_item(item: *mut bindings::config_item) -> Self {
        // SAFETY: By the safety requirements.
        let node = unsafe { Node::container_of(item) };
        // INVARIANT: The caller passes ownership of its reference.
        // SAFETY: The address of a node is not null.
        Self(unsafe { NonNull::new_unchecked(node) })
    }

    /// Passes ownership of the reference to C.
    pub(super) fn into_group(self) -> *mut bindings::config_group {
        core::mem::ManuallyDrop::new(self).as_group()
    }

    pub(super) fn as_group(&self) -> *mut bindings::config_group {
        self.node().as_group()
    }

    pub(super) fn as_subsystem(&self) -> *mut bindings::configfs_subsystem {
        self.node().head.c.get()
    }

    pub(super) fn data(&self) -> &D {
        self.node().data()
    }

    fn node(&self) -> &Node<D> {
        // SAFETY: Our reference keeps the node alive, and it is only ever shared.
        unsafe { self.0.as_ref() }
    }
}

impl<D> Drop for NodeRef<D> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the reference is ours, and it is not used after this.
        unsafe { bindings::config_item_put(self.node().as_item()) };
    }
}

/// An item type with its attributes.
///
/// Each directory has its own table, which is complete before the directory exists and freed with
/// it. It is therefore never changed or freed while C uses it.
///
/// # Invariants
///
/// `item_type` points to the list in `_pointers`, which ends with a NULL pointer and otherwise
/// points to the elements of `_attributes`. Nothing changes after construction.
pub(super) struct Table {
    item_type: bindings::config_item_type,
    owner: &'static ThisModule,
    _attributes: KVec<bindings::configfs_attribute>,
    _pointers: KVec<*mut bindings::configfs_attribute>,
}

impl Table {
    /// Creates a table with `attributes`.
    ///
    /// The attributes have no owner, so an open file holds no reference to the module. It needs
    /// none: once the directory is removed, configfs calls neither `show` nor `store`, has waited
    /// for calls in progress, and accesses nothing of the module for the file. With an owner, a
    /// task that keeps a file open could prevent a module whose initialization has failed from
    /// being freed.
    pub(super) fn new(
        owner: &'static ThisModule,
        attributes: impl ExactSizeIterator<Item = bindings::configfs_attribute>,
        item_operations: &'static bindings::configfs_item_operations,
        group_operations: &'static bindings::configfs_group_operations,
    ) -> Result<Self> {
        let mut files = KVec::with_capacity(attributes.len(), GFP_KERNEL)?;
        for file in attributes {
            files.push(file, GFP_KERNEL)?;
        }

        let mut pointers = KVec::with_capacity(files.len() + 1, GFP_KERNEL)?;
        for file in files.iter_mut() {
            pointers.push(core::ptr::from_mut(file), GFP_KERNEL)?;
        }
        pointers.push(core::ptr::null_mut(), GFP_KERNEL)?;

        // INVARIANT: Moving the vectors does not move their elements, and no method changes them.
        Ok(Self {
            item_type: bindings::config_item_type {
                ct_owner: owner.as_ptr(),
                ct_item_ops: item_operations,
                ct_group_ops: group_operations,
                ct_attrs: pointers.as_mut_ptr(),
                ct_bin_attrs: core::ptr::null_mut(),
            },
            owner,
            _attributes: files,
            _pointers: pointers,
        })
    }

    /// Returns the item type, valid until this table moves or is dropped.
    pub(super) fn as_ptr(&self) -> *const bindings::config_item_type {
        &raw const self.item_type
    }

    pub(super) fn owner(&self) -> &'static ThisModule {
        self.owner
    }
}
