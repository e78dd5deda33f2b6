// SPDX-License-Identifier: GPL-2.0

//! A block major number of one's own.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use crate::{
    bindings,
    late_drop::LateDrop,
    module_pin::ModulePin,
    prelude::*,
    sync::Arc, //
};

/// The longest name that `/proc/devices` holds, in bytes without the terminating NUL.
const NAME_MAX: usize = 15;

/// A block major number, registered under a name in `/proc/devices` until dropped.
///
/// Disks that take their numbers from it share ownership, so it is never given up under them. The
/// last handle may be dropped anywhere; where waiting is impossible, a worker gives the number up a
/// little later.
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

/// A registration, whose drop may sleep.
///
/// # Invariants
///
/// `number` is registered under `name`, which ends with NUL.
struct Registration {
    number: u32,
    /// A copy, since a worker may need it when the driver's module is gone.
    name: [c_char; NAME_MAX + 1],
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
        let mut copy = [0; NAME_MAX + 1];
        for (to, from) in copy.iter_mut().zip(name.to_bytes()) {
            *to = *from as c_char;
        }
        let pin = ModulePin::of_this_code()?;
        // SAFETY: The name is a valid string, which C copies; no number is asked for, and no probe
        // function is given.
        let number = unsafe { bindings::__register_blkdev(0, name.as_char_ptr(), None) };
        let number = u32::try_from(number).map_err(|_| Error::from_errno(number))?;
        // INVARIANT: Just registered. If an allocation fails, it is dropped again.
        let registration = Registration { number, name: copy };
        let registration = LateDrop::new(pin, Ok(registration), GFP_KERNEL)?;
        Ok(Arc::new(Self { registration }, GFP_KERNEL)?)
    }

    /// The number.
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
