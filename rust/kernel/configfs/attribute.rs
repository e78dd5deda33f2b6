// SPDX-License-Identifier: GPL-2.0

//! The attributes of a group.
//!
//! A read of an attribute fills a [`Page`]. A write passes a [`Text`].

use super::node::Node;
use crate::{
    attribute_text::{
        Page,
        Text, //
    },
    bindings,
    prelude::*,
    str::as_char_ptr_in_const_context, //
};
use core::marker::PhantomData;

/// An attribute file of directories with data `D`.
///
/// `show` writes the content of the file, at most 4096 bytes, into a [`Page`]. `store` gets what
/// was written, at most 4095 bytes, as a [`Text`]. Errors are returned to the reading or writing
/// task. A write of zero bytes fails with `EFAULT` before `store` is called, opening in a direction
/// that the file does not support with `EACCES`, and any use after rmdir with `ENOENT`.
///
/// Both are functions or closures that capture nothing, known at compile time: the attributes of a
/// directory are constants.
///
/// C header: [`include/linux/configfs.h`](srctree/include/linux/configfs.h)
///
/// # Invariants
///
/// `show` and `store` may be called with an item in a live `Node<D>` and a page.
///
/// # Examples
///
/// ```
/// use kernel::{configfs::Attribute, prelude::*};
///
/// struct Device;
///
/// const ATTRIBUTES: &[Attribute<Device>] = &[
///     Attribute::ro(c"version", |_device, page| writeln!(page, "1")), // mode 0444
///     Attribute::wo(c"reset", |_device, text| text.kstrtobool().map(|_| ())), // mode 0200
/// ];
///
/// assert_eq!(ATTRIBUTES[1].name(), c"reset");
/// ```
pub struct Attribute<D> {
    name: &'static CStr,
    show: Option<ShowCallback>,
    store: Option<StoreCallback>,
    // Invariant in `D`.
    _data: PhantomData<fn(D) -> D>,
}

type ShowCallback = unsafe extern "C" fn(*mut bindings::config_item, *mut c_char) -> isize;
type StoreCallback =
    unsafe extern "C" fn(*mut bindings::config_item, *const c_char, usize) -> isize;

impl<D: Send + Sync + 'static> Attribute<D> {
    /// Creates an attribute that can be read, mode 0444.
    pub const fn ro<S>(name: &'static CStr, show: S) -> Self
    where
        S: Fn(&D, &mut Page<'_>) -> Result + Copy + Send + 'static,
    {
        // INVARIANT: The callback requires exactly what the invariant guarantees.
        Self {
            name,
            show: Some(show_callback(show)),
            store: None,
            _data: PhantomData,
        }
    }

    /// Creates an attribute that can be written, mode 0200.
    pub const fn wo<T>(name: &'static CStr, store: T) -> Self
    where
        T: Fn(&D, &Text) -> Result + Copy + Send + 'static,
    {
        // INVARIANT: The callback requires exactly what the invariant guarantees.
        Self {
            name,
            show: None,
            store: Some(store_callback(store)),
            _data: PhantomData,
        }
    }

    /// Creates an attribute that can be read and written, mode 0644.
    pub const fn rw<S, T>(name: &'static CStr, show: S, store: T) -> Self
    where
        S: Fn(&D, &mut Page<'_>) -> Result + Copy + Send + 'static,
        T: Fn(&D, &Text) -> Result + Copy + Send + 'static,
    {
        // INVARIANT: The callbacks require exactly what the invariant guarantees.
        Self {
            name,
            show: Some(show_callback(show)),
            store: Some(store_callback(store)),
            _data: PhantomData,
        }
    }

    /// Returns the name of the file.
    pub const fn name(&self) -> &'static CStr {
        self.name
    }

    /// Returns the C description of the file, without an owner; see `Table::new`.
    pub(super) fn to_raw(&self) -> bindings::configfs_attribute {
        bindings::configfs_attribute {
            ca_name: as_char_ptr_in_const_context(self.name),
            ca_owner: core::ptr::null_mut(),
            ca_mode: match (self.show, self.store) {
                (Some(_), Some(_)) => 0o644,
                (Some(_), None) => 0o444,
                (None, _) => 0o200,
            },
            show: self.show,
            store: self.store,
        }
    }
}

/// Returns a C callback that calls a value of the zero-sized type `S`.
const fn show_callback<D, S>(_show: S) -> ShowCallback
where
    D: Send + Sync + 'static,
    S: Fn(&D, &mut Page<'_>) -> Result + Copy + Send + 'static,
{
    const { assert!(size_of::<S>() == 0, "`show` must capture nothing") };
    show::<D, S>
}

/// Returns a C callback that calls a value of the zero-sized type `T`.
const fn store_callback<D, T>(_store: T) -> StoreCallback
where
    D: Send + Sync + 'static,
    T: Fn(&D, &Text) -> Result + Copy + Send + 'static,
{
    const { assert!(size_of::<T>() == 0, "`store` must capture nothing") };
    store::<D, T>
}

/// # Safety
///
/// * `item` must be in a live `Node<D>`, `page` a page that is not used elsewhere during the call.
/// * `S` must be zero-sized, and a value of it must have been passed to [`show_callback`].
unsafe extern "C" fn show<D, S>(item: *mut bindings::config_item, page: *mut c_char) -> isize
where
    D: Send + Sync + 'static,
    S: Fn(&D, &mut Page<'_>) -> Result + Copy + Send + 'static,
{
    // SAFETY: By the safety requirements, `S` is zero-sized, so there is nothing to read, and this
    // is a copy of a value that existed; `S` is `Copy` and `Send`, so copies may exist anywhere at
    // any time.
    let show = unsafe { core::ptr::NonNull::<S>::dangling().read() };
    // SAFETY: By the safety requirements, for the duration of this call.
    let node = unsafe { Node::<D>::from_item(item) };
    // SAFETY: As above.
    let mut page = unsafe { Page::from_raw(page) };

    match show(node.data(), &mut page) {
        Ok(()) => page.len() as isize,
        Err(error) => error.to_errno() as isize,
    }
}

/// # Safety
///
/// * `item` must be in a live `Node<D>`, `page` be NUL-terminated and constant during the call.
/// * `T` must be zero-sized, and a value of it must have been passed to [`store_callback`].
unsafe extern "C" fn store<D, T>(
    item: *mut bindings::config_item,
    page: *const c_char,
    count: usize,
) -> isize
where
    D: Send + Sync + 'static,
    T: Fn(&D, &Text) -> Result + Copy + Send + 'static,
{
    // SAFETY: By the safety requirements, `T` is zero-sized, so there is nothing to read, and this
    // is a copy of a value that existed; `T` is `Copy` and `Send`, so copies may exist anywhere at
    // any time.
    let store = unsafe { core::ptr::NonNull::<T>::dangling().read() };
    // SAFETY: By the safety requirements, for the duration of this call.
    let node = unsafe { Node::<D>::from_item(item) };
    // SAFETY: As above.
    let text = unsafe { CStr::from_char_ptr(page) };

    match store(node.data(), Text::from_cstr(text)) {
        Ok(()) => count as isize,
        Err(error) => error.to_errno() as isize,
    }
}
