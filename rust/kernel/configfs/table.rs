// SPDX-License-Identifier: GPL-2.0

//! The C tables that describe a directory.

use crate::{
    bindings,
    prelude::*, //
};

/// An item type with its attributes.
///
/// Each directory has its own, so that it is clear when it may be changed or freed: it is
/// complete before the directory exists and goes with it.
///
/// # Invariants
///
/// `item_type` points to the list in `pointers`, which ends in null and otherwise points to the
/// elements of `_attributes`. Nothing changes after construction.
pub(super) struct Table {
    item_type: bindings::config_item_type,
    owner: &'static ThisModule,
    _attributes: KVec<bindings::configfs_attribute>,
    _pointers: KVec<*mut bindings::configfs_attribute>,
}

impl Table {
    /// Collects `attributes`.
    ///
    /// They have no owner: a file that is open keeps no module. Nothing of the module is looked at
    /// for it once the directory is gone: then configfs calls neither `show` nor `store`, and has
    /// waited for those that ran. Else a task that keeps a file open could keep a module whose
    /// initialisation has failed from being freed.
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

        // INVARIANT: Moving the vectors does not move their elements, and there is no method to
        // change them.
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

    /// The item type, valid until this table moves or is dropped.
    pub(super) fn as_ptr(&self) -> *const bindings::config_item_type {
        &raw const self.item_type
    }

    pub(super) fn owner(&self) -> &'static ThisModule {
        self.owner
    }
}
