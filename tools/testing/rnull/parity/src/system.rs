// SPDX-License-Identifier: GPL-2.0

//! System calls whose exact error counts.

use std::{
    ffi::CString,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
    path::Path,
};

/// `ok`, or the name of an error.
pub fn verdict<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => "ok".into(),
        Err(error) => name(error),
    }
}

fn name(error: &io::Error) -> String {
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::ERANGE, "ERANGE"),
        (libc::ENAMETOOLONG, "ENAMETOOLONG"),
        (libc::ENOTEMPTY, "ENOTEMPTY"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EREMOTEIO, "EREMOTEIO"),
        (libc::ENODATA, "ENODATA"),
    ];
    let number = error.raw_os_error().unwrap_or(0);
    match names.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => name.to_string(),
        None => format!("errno{number}"),
    }
}

/// What a system call that counts says.
pub fn checked(result: i64) -> io::Result<usize> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result as usize)
    }
}

/// Writes a text in one call.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let written = file.write(text.as_bytes())?;
    if written == text.len() {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ENODATA))
    }
}

/// Reads a text in one call; its lines are joined by blanks.
pub fn get(path: &Path) -> String {
    let read = || {
        let mut text = vec![0; 8192];
        let length = File::open(path)?.read(&mut text)?;
        text.truncate(length);
        Ok(text)
    };
    let read: io::Result<Vec<u8>> = read();
    match read {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text).into_owned();
            match text.strip_suffix('\n') {
                Some(lines) => lines.replace('\n', " "),
                None if text.is_empty() => text,
                None => text + "(no newline)",
            }
        }
        Err(error) => name(&error),
    }
}

/// The permissions of a file in octal.
pub fn mode(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(data) => format!("{:o}", data.permissions().mode() & 0o7777),
        Err(error) => name(&error),
    }
}

/// Inserts a module.
pub fn load(file: &Path, parameters: &str) -> io::Result<()> {
    let file = File::open(file)?;
    let parameters = CString::new(parameters)?;
    // SAFETY: An open file and a text that ends with NUL.
    let result = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            parameters.as_ptr(),
            0,
        )
    };
    checked(result).map(drop)
}

/// Removes a module.
pub fn unload(module: &str) -> io::Result<()> {
    let module = CString::new(module)?;
    // SAFETY: A text that ends with NUL.
    let result =
        unsafe { libc::syscall(libc::SYS_delete_module, module.as_ptr(), libc::O_NONBLOCK) };
    checked(result).map(drop)
}

/// Opens a disk for direct I/O.
pub fn open_disk(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

/// What a disk is asked for besides data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// To forget sectors.
    Discard,
    /// To make sectors zero.
    Zero,
    /// To forget sectors so that nobody finds them.
    SecureErase,
}

/// Asks a disk to do something with `len` bytes from `offset` on.
pub fn control(disk: &File, control: Control, offset: u64, len: u64) -> io::Result<()> {
    let range = [offset, len];
    let request = match control {
        Control::Discard => 0x1277,
        Control::Zero => 0x127f,
        Control::SecureErase => 0x127d,
    };
    // SAFETY: These requests read two numbers.
    checked(unsafe { libc::ioctl(disk.as_raw_fd(), request, range.as_ptr()) }.into()).map(drop)
}

/// Has the kernel read the table of partitions of a disk.
pub fn read_partitions(disk: &File) -> io::Result<()> {
    // SAFETY: This request takes nothing.
    checked(unsafe { libc::ioctl(disk.as_raw_fd(), 0x125f) }.into()).map(drop)
}
