// SPDX-License-Identifier: GPL-2.0

//! The text that goes in or out of an attribute file.

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

/// What a read of an attribute returns, to be written with `write!` or `writeln!`.
///
/// Holds [`Page::SIZE`] bytes.
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
    /// The longest text of an attribute in bytes, whatever the page size of the machine.
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

    /// The number of bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes back all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        // INVARIANT: No more than were written.
        self.len = self.len.min(len);
    }

    /// Appends formatted text; what `write!` and `writeln!` call.
    ///
    /// # Errors
    ///
    /// `EFBIG` if it does not fit. Its pieces before the one that did not fit stay.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result {
        fmt::Write::write_fmt(self, text).map_err(|_| EFBIG)
    }
}

impl fmt::Write for Page<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > Self::SIZE - self.len {
            return Err(fmt::Error);
        }

        // SAFETY: By the type invariant, no more than the page is written, and by the check above
        // there is room for the text, so this is within the page or just behind it.
        let target = unsafe { self.start.add(self.len) };
        // SAFETY: By the type invariant and the check above, the target is within the page; `text`
        // cannot overlap it, since the page has never been lent.
        unsafe {
            text.as_ptr()
                .copy_to_nonoverlapping(target.as_ptr(), text.len())
        };
        // INVARIANT: Still within the page, by the check above.
        self.len += text.len();
        Ok(())
    }
}

/// What was written to an attribute: a string up to the first NUL or the end.
///
/// It converts to numbers exactly as in C, with the functions of C. They accept one leading plus
/// sign (the signed ones also minus), and one newline at the end; nothing else around the digits.
/// In base 0, a leading `0x` means hexadecimal, a leading `0` octal.
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
    /// Regards a string as the content of a write.
    pub fn from_cstr(text: &CStr) -> &Self {
        // SAFETY: `Text` has the representation of `CStr`, and asks for nothing more.
        unsafe { &*(core::ptr::from_ref(text) as *const Self) }
    }

    /// Converts to an unsigned 32-bit number; `EINVAL` if it is none, `ERANGE` if too large.
    pub fn kstrtouint(&self, base: u32) -> Result<u32> {
        let mut value = 0;
        // SAFETY: The string is NUL-terminated, the result valid for writes.
        to_result(unsafe { bindings::kstrtouint(self.as_char_ptr(), base, &mut value) })?;
        Ok(value)
    }

    /// Converts to a signed 32-bit number; `EINVAL` if it is none, `ERANGE` if it does not fit.
    pub fn kstrtoint(&self, base: u32) -> Result<i32> {
        let mut value = 0;
        // SAFETY: The string is NUL-terminated, the result valid for writes.
        to_result(unsafe { bindings::kstrtoint(self.as_char_ptr(), base, &mut value) })?;
        Ok(value)
    }

    /// Converts to an unsigned 64-bit number; `EINVAL` if it is none, `ERANGE` if too large.
    pub fn kstrtoull(&self, base: u32) -> Result<u64> {
        let mut value = 0;
        // SAFETY: The string is NUL-terminated, the result valid for writes.
        to_result(unsafe { bindings::kstrtoull(self.as_char_ptr(), base, &mut value) })?;
        Ok(value)
    }

    /// Converts to an `unsigned long`; `EINVAL` if it is no number, `ERANGE` if too large.
    pub fn kstrtoul(&self, base: u32) -> Result<usize> {
        usize::try_from(self.kstrtoull(base)?).map_err(|_| ERANGE)
    }

    /// Converts to a boolean: `y t 1 on` or `n f 0 off`, of which the first one or two letters
    /// matter, in either case; else `EINVAL`.
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
