// SPDX-License-Identifier: GPL-2.0

//! The attributes of a group.
//!
//! A read of an attribute fills a [`Page`]. A write passes a [`Text`].

use super::node::Node;
use crate::{
    bindings,
    error::to_result,
    fmt,
    prelude::*,
    str::as_char_ptr_in_const_context, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};

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

/// The content of an attribute that is being read, to be written with `write!` or `writeln!`.
///
/// It has room for [`Page::SIZE`] bytes.
///
/// # Invariants
///
/// `start` is valid for writes of [`Page::SIZE`] bytes for `'a`, of which the first `len` are
/// written; `len <= Page::SIZE`.
///
/// # Examples
///
/// ```
/// use kernel::{configfs::Page, prelude::*};
///
/// fn show(size: u32, page: &mut Page<'_>) -> Result {
///     writeln!(page, "{size}")
/// }
/// # let _ = show;
/// ```
pub struct Page<'a> {
    start: NonNull<u8>,
    len: usize,
    _borrow: PhantomData<&'a mut [u8]>,
}

impl Page<'_> {
    /// The maximum size of the content in bytes, regardless of the page size of the machine.
    pub const SIZE: usize = 4096;

    /// # Safety
    ///
    /// `page` must be valid for writes of [`Page::SIZE`] bytes while the result is in use.
    pub(super) unsafe fn from_raw(page: *mut c_char) -> Self {
        // INVARIANT: By the safety requirements, and nothing is written yet.
        Self {
            // SAFETY: A pointer that is valid for writes is not null.
            start: unsafe { NonNull::new_unchecked(page.cast()) },
            len: 0,
            _borrow: PhantomData,
        }
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Discards all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        // INVARIANT: `len` does not grow.
        self.len = self.len.min(len);
    }

    /// Appends formatted text. Called by `write!` and `writeln!`.
    ///
    /// # Errors
    ///
    /// `EFBIG` if the text does not fit. The parts of it before the one that does not fit are kept.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result {
        fmt::Write::write_fmt(self, text).map_err(|_| EFBIG)
    }
}

impl fmt::Write for Page<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > Self::SIZE - self.len {
            return Err(fmt::Error);
        }

        // SAFETY: By the type invariant, at most the whole page is written, and by the check above
        // there is room for the text, so this is within the page or just past its end.
        let target = unsafe { self.start.add(self.len) };
        // SAFETY: By the type invariant and the check above, the target is within the page; `text`
        // cannot overlap it, since the page has never been borrowed.
        unsafe {
            text.as_ptr()
                .copy_to_nonoverlapping(target.as_ptr(), text.len())
        };
        // INVARIANT: Still within the page, by the check above.
        self.len += text.len();
        Ok(())
    }
}

/// The text that was written to an attribute: a string up to the first NUL or the end.
///
/// It converts to numbers as in C, by C's functions. They accept a leading plus sign (the signed
/// ones also a minus sign), and a newline at the end; nothing else around the digits. In base 0, a
/// leading `0x` means hexadecimal, a leading `0` octal.
///
/// C header: [`include/linux/kstrtox.h`](srctree/include/linux/kstrtox.h)
///
/// # Examples
///
/// ```
/// use kernel::{configfs::Text, prelude::*};
///
/// assert_eq!(Text::from_cstr(c"0x10\n").kstrtouint(0)?, 16);
/// assert_eq!(Text::from_cstr(c"+010").kstrtoul(0)?, 8);
/// assert_eq!(Text::from_cstr(c"-1").kstrtoint(10)?, -1);
/// assert_eq!(Text::from_cstr(c"on").kstrtobool()?, true);
/// assert_eq!(Text::from_cstr(c"-1").kstrtouint(0), Err(EINVAL));
/// assert_eq!(Text::from_cstr(c" 1").kstrtouint(0), Err(EINVAL));
/// assert_eq!(Text::from_cstr(c"").kstrtouint(0), Err(EINVAL));
/// assert_eq!(Text::from_cstr(c"4294967296").kstrtouint(0), Err(ERANGE));
/// assert_eq!(Text::from_cstr(c"18446744073709551616").kstrtoull(0), Err(ERANGE));
/// assert_eq!(Text::from_cstr(c"2").kstrtobool(), Err(EINVAL));
/// # Ok::<(), Error>(())
/// ```
#[repr(transparent)]
pub struct Text(CStr);

impl Text {
    /// Converts a string to the text of a write.
    pub fn from_cstr(text: &CStr) -> &Self {
        // SAFETY: `Text` has the representation of `CStr`, and no further requirements.
        unsafe { &*(core::ptr::from_ref(text) as *const Self) }
    }

    /// Converts to an unsigned 32-bit number; `EINVAL` if the text is not a number, `ERANGE` if it
    /// is too large.
    pub fn kstrtouint(&self, base: u32) -> Result<u32> {
        let mut value = 0;
        // SAFETY: The string is NUL-terminated, the result valid for writes.
        to_result(unsafe { bindings::kstrtouint(self.as_char_ptr(), base, &mut value) })?;
        Ok(value)
    }

    /// Converts to a signed 32-bit number; `EINVAL` if the text is not a number, `ERANGE` if it
    /// does not fit.
    pub fn kstrtoint(&self, base: u32) -> Result<i32> {
        let mut value = 0;
        // SAFETY: The string is NUL-terminated, the result valid for writes.
        to_result(unsafe { bindings::kstrtoint(self.as_char_ptr(), base, &mut value) })?;
        Ok(value)
    }

    /// Converts to an unsigned 64-bit number; `EINVAL` if the text is not a number, `ERANGE` if it
    /// is too large.
    pub fn kstrtoull(&self, base: u32) -> Result<u64> {
        let mut value = 0;
        // SAFETY: The string is NUL-terminated, the result valid for writes.
        to_result(unsafe { bindings::kstrtoull(self.as_char_ptr(), base, &mut value) })?;
        Ok(value)
    }

    /// Converts to an `unsigned long`; `EINVAL` if the text is not a number, `ERANGE` if it is too
    /// large.
    pub fn kstrtoul(&self, base: u32) -> Result<usize> {
        usize::try_from(self.kstrtoull(base)?).map_err(|_| ERANGE)
    }

    /// Converts to a boolean: `y`, `t`, `1` and `on` are true, `n`, `f`, `0` and `off` are false.
    /// Only the first one or two characters are compared, ignoring case. Any other text fails with
    /// `EINVAL`.
    pub fn kstrtobool(&self) -> Result<bool> {
        crate::str::kstrtobool(self)
    }
}

impl Deref for Text {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        &self.0
    }
}
