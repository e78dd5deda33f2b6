// SPDX-License-Identifier: GPL-2.0

//! The status of an I/O.
//!
//! It is no [`Error`], since most error numbers have no status of their own.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use crate::{
    bindings,
    prelude::*,
    trace::TraceArg, //
};
use core::num::NonZeroU8;

/// The result of an I/O: `Ok` is C's `BLK_STS_OK`.
pub type BlkResult<T = ()> = core::result::Result<T, BlkStatus>;

/// The error status of an I/O: a `blk_status_t` other than `BLK_STS_OK`.
///
/// The description of each constant ends with the error number that user space gets.
///
/// # Invariants
///
/// The number is one of C's `BLK_STS_*`, other than `BLK_STS_OK`.
///
/// # Examples
///
/// ```
/// use kernel::block::{BlkResult, BlkStatus};
///
/// fn check(fits: bool) -> BlkResult {
///     if fits { Ok(()) } else { Err(BlkStatus::NOSPC) }
/// }
///
/// assert_eq!(check(false).map_err(Error::from), Err(ENOSPC));
/// assert_eq!(BlkStatus::from(ENOMEM), BlkStatus::RESOURCE);
/// // A result is one byte, as in C.
/// assert_eq!(size_of::<BlkResult>(), 1);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(transparent)]
pub struct BlkStatus(NonZeroU8);

/// Declares the constants; `rust/helpers/blk.c` asserts that the numbers are those of C.
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl BlkStatus {
            $(
                $(#[$doc])*
                // INVARIANT: The number is one of C's.
                pub const $name: Self = Self(match NonZeroU8::new($number) {
                    Some(number) => number,
                    None => panic!("zero is BLK_STS_OK"),
                });
            )*
        }
    };
}

statuses! {
    /// The operation is not supported: `EOPNOTSUPP`.
    NOTSUPP = 1;
    /// The operation took too long: `ETIMEDOUT`.
    TIMEOUT = 2;
    /// No space is left: `ENOSPC`.
    NOSPC = 3;
    /// The path to the device failed, another path may work: `ENOLINK`.
    TRANSPORT = 4;
    /// The device failed, another path does not help: `EREMOTEIO`.
    TARGET = 5;
    /// Another host has reserved the device: `EBADE`.
    RESV_CONFLICT = 6;
    /// The medium failed: `ENODATA`.
    MEDIUM = 7;
    /// The protection information is wrong: `EILSEQ`.
    PROTECTION = 8;
    /// The system is out of memory or another resource: `ENOMEM`. The block layer retries a request
    /// that is rejected with it after a delay.
    RESOURCE = 9;
    /// Any other failure: `EIO`.
    IOERR = 10;
    /// The request must not wait, but would have to: `EAGAIN`.
    AGAIN = 12;
    /// The device is busy: `EBUSY`. For a request that is rejected, it is equivalent to
    /// [`Self::RESOURCE`].
    DEV_RESOURCE = 13;
    /// Too many zones are open: `ETOOMANYREFS`.
    ZONE_OPEN_RESOURCE = 14;
    /// Too many zones are active: `EOVERFLOW`.
    ZONE_ACTIVE_RESOURCE = 15;
    /// The device is offline: `ENODEV`.
    OFFLINE = 16;
    /// The request exceeded its duration limit: `ETIME`.
    DURATION_LIMIT = 17;
    /// The request is invalid: `EINVAL`.
    INVAL = 19;
}

impl BlkStatus {
    /// Returns whether the block layer retries a request that is rejected with this status.
    #[inline]
    pub const fn is_retried(self) -> bool {
        self.0.get() == Self::RESOURCE.0.get() || self.0.get() == Self::DEV_RESOURCE.0.get()
    }

    /// Returns the number for C, which is never zero.
    #[inline]
    pub(crate) const fn as_raw(self) -> bindings::blk_status_t {
        self.0.get()
    }
}

/// Converts C's `blk_status_t` to a result.
#[inline]
pub(crate) fn from_raw(status: bindings::blk_status_t) -> BlkResult {
    // INVARIANT: C's status is one of its `BLK_STS_*`.
    NonZeroU8::new(status).map_or(Ok(()), |number| Err(BlkStatus(number)))
}

/// Converts a result to C's `blk_status_t`.
#[inline]
pub(crate) fn as_raw(result: BlkResult) -> bindings::blk_status_t {
    match result {
        Ok(()) => bindings::BLK_STS_OK as bindings::blk_status_t,
        Err(status) => status.as_raw(),
    }
}

// SAFETY: It is a plain value.
unsafe impl TraceArg for BlkResult {
    type Raw = bindings::blk_status_t;

    #[inline]
    fn into_raw(self) -> bindings::blk_status_t {
        as_raw(self)
    }
}

/// Converts to the status that C maps the error number to, which is [`BlkStatus::IOERR`] for most.
impl From<Error> for BlkStatus {
    fn from(error: Error) -> Self {
        // SAFETY: The function accepts any number.
        let number = unsafe { bindings::errno_to_blk_status(error.to_errno()) };
        // INVARIANT: C returns one of its `BLK_STS_*`, and zero is replaced.
        NonZeroU8::new(number).map_or(Self::IOERR, Self)
    }
}

/// Converts to the error number that user space gets.
impl From<BlkStatus> for Error {
    fn from(status: BlkStatus) -> Self {
        // SAFETY: By the type invariant of `BlkStatus`, the number is one of C's.
        Error::from_errno(unsafe { bindings::blk_status_to_errno(status.as_raw()) })
    }
}

#[cfg(CONFIG_RUST_KUNIT_TESTS)]
#[macros::kunit_tests(rust_block_status)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_statuses_agree() {
        for (status, error) in [
            (BlkStatus::TIMEOUT, ETIMEDOUT),
            (BlkStatus::NOSPC, ENOSPC),
            (BlkStatus::RESOURCE, ENOMEM),
            (BlkStatus::AGAIN, EAGAIN),
            (BlkStatus::DEV_RESOURCE, EBUSY),
            (BlkStatus::ZONE_ACTIVE_RESOURCE, EOVERFLOW),
            (BlkStatus::OFFLINE, ENODEV),
            (BlkStatus::INVAL, EINVAL),
            (BlkStatus::IOERR, EIO),
        ] {
            assert_eq!(Error::from(status), error);
            assert_eq!(BlkStatus::from(error), status);
        }
    }

    #[test]
    fn other_errors_are_io_errors() {
        assert_eq!(BlkStatus::from(EPERM), BlkStatus::IOERR);
    }

    #[test]
    fn only_a_lack_of_resources_is_retried() {
        assert!(BlkStatus::RESOURCE.is_retried());
        assert!(BlkStatus::DEV_RESOURCE.is_retried());
        assert!(!BlkStatus::IOERR.is_retried());
        assert!(!BlkStatus::ZONE_OPEN_RESOURCE.is_retried());
    }
}
