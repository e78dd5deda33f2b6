// SPDX-License-Identifier: GPL-2.0

//! The text of attribute files in sysfs or configfs.
//!
//! A read of an attribute fills a [`Page`]. A write passes a [`Text`].

// Not used in all configurations.
#![allow(dead_code)]

use crate::{
    bindings,
    error::to_result,
    fmt,
    prelude::*, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};

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
/// use kernel::{attribute_text::Page, prelude::*};
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
    pub(crate) unsafe fn from_raw(page: *mut c_char) -> Self {
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
/// use kernel::{attribute_text::Text, prelude::*};
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
