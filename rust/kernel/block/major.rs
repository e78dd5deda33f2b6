// SPDX-License-Identifier: GPL-2.0

//! Registration of block major numbers.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    late_drop::LateDrop,
    module_pin::ModulePin,
    prelude::*,
    sync::Arc, //
};

/// The longest name that `/proc/devices` can show, in bytes without the terminating NUL.
const NAME_MAX: usize = 15;

/// A block major number, registered under a name in `/proc/devices` until dropped.
///
/// A disk that uses the number holds a reference, so the number stays registered while the disk is
/// on the system. The last reference may be dropped in any context; where the caller cannot sleep,
/// a work item unregisters the number.
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
    registration: LateDrop<Registration>,
}

/// A registration of a number. Dropping it may sleep.
///
/// # Invariants
///
/// `number` is registered under `name`, which ends with NUL.
struct Registration {
    number: u32,
    /// A copy, since a work item may need it after the driver's module was unloaded.
    name: [c_char; NAME_MAX + 1],
}

impl BlockMajor {
    /// Registers a free major number under `name`.
    ///
    /// Fails with `EINVAL` if the name is longer than 15 bytes, `EBUSY` if no number is free, or
    /// `ENOMEM` if out of memory.
    pub fn register(name: &'static CStr) -> Result<Arc<Self>> {
        if name.to_bytes().len() > NAME_MAX {
            return Err(EINVAL);
        }
        let mut copy = [0; NAME_MAX + 1];
        for (to, from) in copy.iter_mut().zip(name.to_bytes()) {
            *to = *from as c_char;
        }
        let pin = ModulePin::of_this_code()?;
        // SAFETY: The name is a valid string, which C copies. Zero requests a free number, and
        // there is no probe function.
        let number = unsafe { bindings::__register_blkdev(0, name.as_char_ptr(), None) };
        let number = u32::try_from(number).map_err(|_| Error::from_errno(number))?;
        // INVARIANT: The number was just registered. If an allocation below fails, it is
        // unregistered.
        let registration = Registration { number, name: copy };
        let registration = LateDrop::new(pin, Ok(registration), GFP_KERNEL)?;
        Ok(Arc::new(Self { registration }, GFP_KERNEL)?)
    }

    /// Returns the major number.
    pub fn number(&self) -> u32 {
        self.registration.number
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the number is registered under this name.
        unsafe { bindings::unregister_blkdev(self.number, self.name.as_ptr()) };
    }
}
