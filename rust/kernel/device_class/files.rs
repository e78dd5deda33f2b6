// SPDX-License-Identifier: GPL-2.0

//! The files that tasks have open of a character device.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::inner::{
    Inner,
    Operations, //
};
use crate::{
    bindings,
    fs::File,
    module::this_module,
    prelude::*, //
};
use core::marker::PhantomData;

/// The operations of the files of devices with operations `T`.
pub(super) struct FileOperations<T>(PhantomData<T>);

impl<T: Operations> FileOperations<T> {
    /// The operations, in the memory of the driver's module, to which a file has a reference.
    pub(super) const TABLE: &'static bindings::file_operations = &bindings::file_operations {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        open: Some(Self::open),
        release: Some(Self::release),
        unlocked_ioctl: Some(Self::ioctl),
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: bindings::compat_ptr_ioctl,
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// For C only, which calls this for a file that is being opened of a device with operations
    /// `T`, to whose `cdev` it has a reference.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the safety requirements.
        let cdev = unsafe { bindings::inode_cdev(inode) };
        // SAFETY: By the safety requirements, it is in an `Inner<T>`, which remains as long as its
        // `cdev`, which has a reference to the device.
        let inner = unsafe { Inner::<T>::from_cdev(cdev) };
        // SAFETY: As above.
        if let Err(error) = unsafe { &*inner }.check_open() {
            return error.to_errno();
        }
        // SAFETY: As above.
        unsafe { Inner::get(inner) };
        // SAFETY: The file is being opened, so its private data is ours.
        unsafe { (*file).private_data = inner.cast_mut().cast() };
        0
    }

    /// # Safety
    ///
    /// For C only, which calls this once for a file that was opened by [`Self::open`].
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the safety requirements.
        let inner = unsafe { (*file).private_data }.cast_const().cast();
        // SAFETY: This is the reference of the file.
        unsafe { Inner::<T>::put(inner) };
        0
    }

    /// # Safety
    ///
    /// For C only, which calls this for a file that was opened by [`Self::open`], and not released.
    unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
        // SAFETY: By the safety requirements, `open` has set it.
        let inner = unsafe { (*file).private_data }
            .cast_const()
            .cast::<Inner<T>>();
        // SAFETY: The file has a reference.
        let inner = unsafe { &*inner };
        // SAFETY: The file is valid for the duration of this call. C does not hold its position
        // lock while it calls this.
        let file = unsafe { File::from_raw_file(file) };
        let result = inner
            .check_there()
            .and_then(|()| T::ioctl(inner.data(), file, cmd, arg));
        match result {
            Ok(result) => result as c_long,
            Err(error) => error.to_errno() as c_long,
        }
    }
}
