// SPDX-License-Identifier: GPL-2.0

//! The character devices of namespaces, `/dev/rngNnM`, which are there for commands alone.

use super::{
    io_queue::{
        Io,
        Ioctls, //
    },
    names, //
};
use kernel::{
    block::mq::{
        DiskHandle,
        IoctlCaller, //
    },
    compat::in_compat_syscall,
    device_class::{
        Class,
        ClassDevice,
        ClassDeviceOptions,
        Operations,
        Parent, //
    },
    fs::{
        file::flags,
        File, //
    },
    prelude::*,
    str::CString,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

/// How many namespaces of a controller may have such a device.
const PER_CONTROLLER: u32 = 1024;

/// The class of the devices.
pub(crate) static NAMESPACES: Class = Class::new(names::GENERIC_CLASS, 1 << 20);

/// Returns how the task that calls an ioctl has opened a file that is not that of a disk.
pub(crate) fn caller(file: &File) -> IoctlCaller {
    IoctlCaller {
        can_write: matches!(
            file.flags() & flags::O_ACCMODE,
            flags::O_WRONLY | flags::O_RDWR
        ),
        is_partition: false,
        is_compat: in_compat_syscall(),
    }
}

/// What tasks can do with a namespace.
pub(crate) struct Generic {
    disk: DiskHandle<Io>,
    ioctls: Arc<dyn Ioctls>,
}

#[vtable]
impl Operations for Generic {
    fn ioctl(this: ArcBorrow<'_, Self>, file: &File, cmd: u32, arg: usize) -> Result<isize> {
        let result = this
            .disk
            .access(|disk| this.ioctls.ioctl(disk, caller(file), cmd, arg))?;
        Ok(result as isize)
    }
}

/// Adds the device of a namespace, whose disk has the `number`.
pub(crate) fn add(
    disk: DiskHandle<Io>,
    ioctls: Arc<dyn Ioctls>,
    parent: Arc<Parent>,
    instance: usize,
    number: u32,
) -> Result<ClassDevice<Generic>> {
    // Numbers begin at 1.
    if number > PER_CONTROLLER {
        return Err(ENOSPC);
    }
    let generic = Generic { disk, ioctls };
    let options = ClassDeviceOptions {
        name: &CString::try_from_fmt(fmt!("{}{instance}n{number}", names::GENERIC))?,
        parent: Some(parent),
        minor: Some(instance as u32 * PER_CONTROLLER + number - 1),
    };
    ClassDevice::new(&NAMESPACES, options, Arc::new(generic, GFP_KERNEL)?)
}
