// SPDX-License-Identifier: GPL-2.0

//! A block major number of one's own.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    prelude::*,
    sync::Arc, //
};

/// The longest name that `/proc/devices` holds, in bytes without the terminating NUL.
const NAME_MAX: usize = 15;

/// A block major number, registered under a name in `/proc/devices` until dropped.
///
/// Disks that take their numbers from it share ownership, so it is never given up under them.
///
/// # Invariants
///
/// `number` is registered under `name`, which has at most [`NAME_MAX`] bytes.
///
/// # Examples
///
/// ```
/// use kernel::block::major::BlockMajor;
///
/// let major = BlockMajor::register(c"exampleb")?;
/// assert_ne!(major.number(), 0);
/// # Ok::<(), Error>(())
/// ```
pub struct BlockMajor {
    number: u32,
    name: &'static CStr,
}

impl BlockMajor {
    /// Registers a free major number under `name`.
    ///
    /// Fails with `EINVAL` if the name is longer than 15 bytes, `EBUSY` if no number is free,
    /// `ENOMEM` if memory is short.
    pub fn register(name: &'static CStr) -> Result<Arc<Self>> {
        if name.to_bytes().len() > NAME_MAX {
            return Err(EINVAL);
        }
        // SAFETY: The name is a valid string, which C copies; no number is asked for, and no probe
        // function is given.
        let number = unsafe { bindings::__register_blkdev(0, name.as_char_ptr(), None) };
        let number = u32::try_from(number).map_err(|_| Error::from_errno(number))?;
        // INVARIANT: Just registered. If the allocation fails, it is dropped again.
        Ok(Arc::new(Self { number, name }, GFP_KERNEL)?)
    }

    /// The number.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for BlockMajor {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the number is registered under this name.
        unsafe { bindings::unregister_blkdev(self.number, self.name.as_char_ptr()) };
    }
}
