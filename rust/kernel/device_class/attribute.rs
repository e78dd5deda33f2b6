// SPDX-License-Identifier: GPL-2.0

//! The attribute files of a device in sysfs.
//!
//! C header: [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h)

use crate::{
    attribute_text::{
        Page,
        Text, //
    },
    bindings,
    prelude::*,
    types::Opaque, //
};
use core::ptr;

/// An attribute file of devices with data `D`.
///
/// `show` writes the content of the file, less than 4096 bytes, into a [`Page`]. `store` gets what
/// was written as a [`Text`]. Errors are returned to the task that reads or writes.
///
/// A device is removed when these calls have ended. So they must not wait for a lock that is held
/// where the device is removed, for example that of its parent, nor remove the device.
///
/// # Examples
///
/// ```
/// use kernel::{device_class::Attribute, prelude::*};
///
/// struct Clock {
///     hertz: u32,
///     has_reset: bool,
/// }
///
/// const ATTRIBUTES: &[Attribute<Clock>] = &[
///     Attribute::ro(c"hertz", |clock, page| writeln!(page, "{}", clock.hertz)), // mode 0444
///     Attribute::wo(c"reset", |_clock, text| text.kstrtobool().map(|_| ())) // mode 0200
///         .only_if(|clock| clock.has_reset),
/// ];
///
/// assert_eq!(ATTRIBUTES[0].name(), c"hertz");
/// ```
pub struct Attribute<D: 'static> {
    name: &'static CStr,
    mode: bindings::umode_t,
    show: Option<fn(&D, &mut Page<'_>) -> Result>,
    store: Option<fn(&D, &Text) -> Result>,
    is_there: Option<fn(&D) -> bool>,
}

impl<D: Send + Sync + 'static> Attribute<D> {
    /// Creates an attribute that can be read, mode 0444.
    pub const fn ro(name: &'static CStr, show: fn(&D, &mut Page<'_>) -> Result) -> Self {
        Self {
            name,
            mode: 0o444,
            show: Some(show),
            store: None,
            is_there: None,
        }
    }

    /// Creates an attribute that can be written, mode 0200.
    pub const fn wo(name: &'static CStr, store: fn(&D, &Text) -> Result) -> Self {
        Self {
            name,
            mode: 0o200,
            show: None,
            store: Some(store),
            is_there: None,
        }
    }

    /// Creates an attribute that can be read and written, mode 0644.
    pub const fn rw(
        name: &'static CStr,
        show: fn(&D, &mut Page<'_>) -> Result,
        store: fn(&D, &Text) -> Result,
    ) -> Self {
        Self {
            name,
            mode: 0o644,
            show: Some(show),
            store: Some(store),
            is_there: None,
        }
    }

    /// Makes it a file only of those devices for which `is_there` returns true when the device is
    /// made.
    pub const fn only_if(mut self, is_there: fn(&D) -> bool) -> Self {
        self.is_there = Some(is_there);
        self
    }

    /// Returns the name of the file.
    pub const fn name(&self) -> &'static CStr {
        self.name
    }
}

/// An attribute as C knows it, with what its callbacks need.
///
/// # Invariants
///
/// `data` is valid for reads while C may call the callbacks.
#[repr(C)]
struct Entry<D: 'static> {
    /// Comes first, so that a pointer to it is also a pointer to the entry.
    raw: Opaque<bindings::device_attribute>,
    attribute: &'static Attribute<D>,
    data: *const D,
}

/// The attributes of one device, as a group that C is given.
///
/// # Invariants
///
/// The pointers of `groups`, `group` and `pointers` are to what follows them, and to `null` at the
/// end; all that is in allocations that are not changed.
pub(crate) struct Table<D: 'static> {
    groups: KVec<*const bindings::attribute_group>,
    _group: KBox<Opaque<bindings::attribute_group>>,
    _pointers: KVec<*mut bindings::attribute>,
    _entries: KVec<Entry<D>>,
}

// SAFETY: The table lends shared references to the data to tasks that use the files, and owns
// allocations alone.
unsafe impl<D: Send + Sync + 'static> Send for Table<D> {}

// SAFETY: As above.
unsafe impl<D: Send + Sync + 'static> Sync for Table<D> {}

impl<D: Send + Sync + 'static> Table<D> {
    /// Makes the table of those attributes that a device with this data has.
    ///
    /// # Safety
    ///
    /// `data` must be valid for reads as long as C has the table.
    pub(crate) unsafe fn new(attributes: &'static [Attribute<D>], data: *const D) -> Result<Self> {
        let mut entries = KVec::with_capacity(attributes.len(), GFP_KERNEL)?;
        for attribute in attributes {
            // SAFETY: By the safety requirement.
            let is_there = |is_there: fn(&D) -> bool| is_there(unsafe { &*data });
            if attribute.is_there.is_none_or(is_there) {
                // INVARIANT: By the safety requirement.
                let entry = Entry {
                    raw: Opaque::new(pin_init::zeroed()),
                    attribute,
                    data,
                };
                entries.push_within_capacity(entry)?;
            }
        }
        let mut pointers = KVec::with_capacity(entries.len() + 1, GFP_KERNEL)?;
        for entry in entries.iter() {
            let raw = entry.raw.get();
            let attribute = entry.attribute;
            let show: ShowCallback = show::<D>;
            let store: StoreCallback = store::<D>;
            // SAFETY: The attribute is ours, and all zero. The name is static. The callbacks
            // require what the type invariant of `Entry` guarantees.
            unsafe {
                bindings::device_attribute_init(
                    raw,
                    attribute.name.as_char_ptr(),
                    attribute.mode,
                    attribute.show.map(|_| show),
                    attribute.store.map(|_| store),
                )
            };
            // The attribute comes first in the structure.
            pointers.push_within_capacity(raw.cast())?;
        }
        pointers.push_within_capacity(ptr::null_mut())?;
        let group = KBox::new(Opaque::new(pin_init::zeroed()), GFP_KERNEL)?;
        // SAFETY: The group is ours, and all zero.
        unsafe { bindings::attribute_group_init(group.get(), pointers.as_mut_ptr()) };
        let mut groups = KVec::with_capacity(2, GFP_KERNEL)?;
        groups.push_within_capacity(group.get().cast_const())?;
        groups.push_within_capacity(ptr::null())?;
        // INVARIANT: As was just written.
        Ok(Self {
            groups,
            _group: group,
            _pointers: pointers,
            _entries: entries,
        })
    }

    /// Returns the groups, as C takes them: a list that ends with a null pointer, which C only
    /// reads. It is valid as long as the table.
    pub(crate) fn as_raw(&self) -> *mut *const bindings::attribute_group {
        self.groups.as_ptr().cast_mut()
    }
}

type ShowCallback = unsafe extern "C" fn(
    *mut bindings::device,
    *mut bindings::device_attribute,
    *mut c_char,
) -> isize;

type StoreCallback = unsafe extern "C" fn(
    *mut bindings::device,
    *mut bindings::device_attribute,
    *const c_char,
    usize,
) -> isize;

/// # Safety
///
/// `attribute` must be that of an [`Entry<D>`] whose data is valid, `page` a page that is not used
/// elsewhere during the call.
unsafe extern "C" fn show<D: 'static>(
    _dev: *mut bindings::device,
    attribute: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: By the safety requirements, for the duration of this call.
    let entry = unsafe { &*attribute.cast_const().cast::<Entry<D>>() };
    // SAFETY: By the type invariant of `Entry`.
    let data = unsafe { &*entry.data };
    // SAFETY: A page has at least that size.
    let mut page = unsafe { Page::from_raw(page) };
    let Some(show) = entry.attribute.show else {
        return EIO.to_errno() as isize;
    };
    match show(data, &mut page) {
        // C does not take a whole page.
        Ok(()) if page.len() == Page::SIZE => EFBIG.to_errno() as isize,
        Ok(()) => page.len() as isize,
        Err(error) => error.to_errno() as isize,
    }
}

/// # Safety
///
/// `attribute` must be that of an [`Entry<D>`] whose data is valid, `text` be NUL-terminated and
/// constant during the call.
unsafe extern "C" fn store<D: 'static>(
    _dev: *mut bindings::device,
    attribute: *mut bindings::device_attribute,
    text: *const c_char,
    count: usize,
) -> isize {
    // SAFETY: By the safety requirements, for the duration of this call.
    let entry = unsafe { &*attribute.cast_const().cast::<Entry<D>>() };
    // SAFETY: By the type invariant of `Entry`.
    let data = unsafe { &*entry.data };
    // SAFETY: By the safety requirements.
    let text = unsafe { CStr::from_char_ptr(text) };
    let Some(store) = entry.attribute.store else {
        return EIO.to_errno() as isize;
    };
    match store(data, Text::from_cstr(text)) {
        Ok(()) => count as isize,
        Err(error) => error.to_errno() as isize,
    }
}
