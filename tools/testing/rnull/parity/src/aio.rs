// SPDX-License-Identifier: GPL-2.0

//! Transfers that are under way at the same time, by the older interface, which waits for tags.

use crate::{ring::Transfer, system::checked};
use std::{io, os::fd::AsRawFd, ptr};

/// `struct iocb`.
#[repr(C)]
#[derive(Default)]
struct Entry {
    id: u64,
    key: u32,
    how: i32,
    operation: u16,
    priority: i16,
    fd: u32,
    vectors: u64,
    count: u64,
    offset: u64,
    other: [u64; 2],
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Done {
    id: u64,
    entry: u64,
    result: i64,
    other: i64,
}

/// What the kernel knows a context by.
struct Context(u64);

impl Context {
    fn new(count: usize) -> io::Result<Self> {
        let mut context = Self(0);
        // SAFETY: The kernel writes a number.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, count, &raw mut context.0) };
        checked(made).map(|_| context)
    }

    /// Begins what entries ask for; returns how many it has begun.
    fn submit(&self, entries: &[*const Entry]) -> io::Result<usize> {
        let (count, first) = (entries.len(), entries.as_ptr());
        // SAFETY: The entries are there, and tell of memory that outlives the context.
        checked(unsafe { libc::syscall(libc::SYS_io_submit, self.0, count, first) })
    }

    /// Waits for an end.
    fn done(&self) -> io::Result<Done> {
        let mut done = Done::default();
        let (one, at, for_ever) = (1usize, &raw mut done, ptr::null::<u8>());
        // SAFETY: There is room for one.
        let count =
            unsafe { libc::syscall(libc::SYS_io_getevents, self.0, one, one, at, for_ever) };
        checked(count).map(|_| done)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: Nobody uses it any more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// Begins all transfers before it waits for one; returns what each has said.
pub fn run(transfers: &mut [Transfer<'_>]) -> io::Result<Vec<io::Result<usize>>> {
    let vectors: Vec<_> = transfers.iter_mut().map(|t| t.buffer.vectors()).collect();
    let entry = |(i, (transfer, vectors)): (usize, (&Transfer<'_>, &Vec<libc::iovec>))| Entry {
        id: i as u64,
        how: if transfer.durable { libc::RWF_DSYNC } else { 0 },
        operation: if transfer.write { 8 } else { 7 },
        fd: transfer.disk.as_raw_fd() as u32,
        vectors: vectors.as_ptr() as u64,
        count: vectors.len() as u64,
        offset: transfer.offset,
        ..Entry::default()
    };
    let pairs = transfers.iter().zip(&vectors).enumerate();
    let entries: Vec<Entry> = pairs.map(entry).collect();
    let pointers: Vec<_> = entries.iter().map(|entry| entry as *const Entry).collect();
    let context = Context::new(entries.len().max(1))?;
    let mut results: Vec<io::Result<usize>> = entries.iter().map(|_| Ok(0)).collect();
    let (mut begun, mut under_way) = (0, 0);
    while begun < pointers.len() {
        match context.submit(&pointers[begun..]) {
            Ok(count) => {
                begun += count;
                under_way += count;
            }
            // It is about the first of them.
            Err(why) => {
                results[begun] = Err(why);
                begun += 1;
            }
        }
    }
    while under_way > 0 {
        match context.done() {
            Ok(done) => {
                under_way -= 1;
                results[done.id as usize] = match done.result {
                    error if error < 0 => Err(io::Error::from_raw_os_error(-error as i32)),
                    bytes => Ok(bytes as usize),
                };
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            // What is under way has the buffers still.
            Err(why) => panic!("io_getevents: {why}"),
        }
    }
    Ok(results)
}
