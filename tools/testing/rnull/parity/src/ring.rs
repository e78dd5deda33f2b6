// SPDX-License-Identifier: GPL-2.0

//! Transfers that are under way at the same time, by io_uring.

use crate::{memory::Buffer, system::checked};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// What is to be transferred.
pub struct Transfer<'a> {
    pub disk: &'a File,
    pub buffer: &'a mut Buffer,
    pub offset: u64,
    pub write: bool,
    /// Through all caches.
    pub durable: bool,
}

/// Where the parts of a queue are: `struct io_sqring_offsets`, `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct Offsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    lost: u32,
    /// The results, in the queue that has them.
    results: u32,
    other: [u32; 2],
    address: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    entries: [u32; 2],
    flags: u32,
    other: [u32; 7],
    asked: Offsets,
    done: Offsets,
}

/// `struct io_uring_sqe`.
#[repr(C)]
#[derive(Default)]
struct Entry {
    operation: u8,
    flags: u8,
    priority: u16,
    fd: RawFd,
    offset: u64,
    vectors: u64,
    count: u32,
    how: u32,
    id: u64,
    other: [u64; 3],
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Done {
    id: u64,
    result: i32,
    flags: u32,
}

/// A part of a ring's memory.
struct Map {
    memory: *mut u8,
    len: usize,
}

impl Map {
    fn new(ring: &OwnedFd, len: usize, what: i64) -> io::Result<Self> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
        );
        // SAFETY: New memory, wherever the kernel likes.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), len, access, flags, ring.as_raw_fd(), what) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = memory.cast();
        Ok(Self { memory, len })
    }

    /// The number at an offset, which the kernel sees, too.
    fn number(&self, at: u32) -> &AtomicU32 {
        assert!(at as usize + 4 <= self.len && at % 4 == 0);
        // SAFETY: In the map, which stays as long as the reference; zeros to begin with.
        unsafe { &*self.memory.add(at as usize).cast() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: Mapped with this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.memory.cast(), self.len) };
    }
}

/// The place of the queues in a ring's file.
const QUEUES: [i64; 2] = [0, 0x800_0000];

/// The place of the entries.
const ENTRIES: i64 = 0x1000_0000;

/// The ends of transfers are polled for.
const POLLED: u32 = 1 << 0;

/// The entries are taken in their order.
const NO_ARRAY: u32 = 1 << 16;

/// The call is to wait.
const WAIT: u32 = 1 << 0;

/// A pair of queues.
struct Ring {
    file: OwnedFd,
    asked: Map,
    done: Map,
    entries: Map,
    at: Parameters,
}

impl Ring {
    fn new(count: u32, polled: bool) -> io::Result<Self> {
        let mut at = Parameters {
            flags: NO_ARRAY | if polled { POLLED } else { 0 },
            ..Parameters::default()
        };
        // SAFETY: The parameters have the kernel's form.
        let file = unsafe { libc::syscall(libc::SYS_io_uring_setup, count, &raw mut at) };
        let file = checked(file)? as RawFd;
        // SAFETY: A new file that nobody else has.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // What a queue has before its results, or instead of them, is less than a page.
        let results = at.entries[1] as usize * size_of::<Done>();
        Ok(Self {
            asked: Map::new(&file, 4096, QUEUES[0])?,
            done: Map::new(&file, at.done.results as usize + results, QUEUES[1])?,
            entries: Map::new(&file, at.entries[0] as usize * size_of::<Entry>(), ENTRIES)?,
            file,
            at,
        })
    }

    fn ask(&mut self, entry: Entry) {
        let tail = self.asked.number(self.at.asked.tail);
        let now = tail.load(Ordering::Relaxed);
        let slot = now
            & self
                .asked
                .number(self.at.asked.mask)
                .load(Ordering::Relaxed);
        assert!((slot as usize + 1) * size_of::<Entry>() <= self.entries.len);
        // SAFETY: In the map, where the kernel does not look before the tail has moved.
        unsafe {
            self.entries
                .memory
                .cast::<Entry>()
                .add(slot as usize)
                .write(entry)
        };
        tail.store(now.wrapping_add(1), Ordering::Release);
    }

    /// Has `count` entries looked at, waits for so many ends; returns how many were looked at.
    fn enter(&self, count: usize, ends: usize) -> io::Result<usize> {
        let ring = self.file.as_raw_fd();
        // SAFETY: The entries tell of memory that outlives the ring.
        checked(unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                ring,
                count,
                ends,
                if ends > 0 { WAIT } else { 0 },
                ptr::null::<u8>(),
                0usize,
            )
        })
    }

    fn done(&mut self) -> Option<Done> {
        let head = self.done.number(self.at.done.head);
        let now = head.load(Ordering::Relaxed);
        if now == self.done.number(self.at.done.tail).load(Ordering::Acquire) {
            return None;
        }
        let slot = now & self.done.number(self.at.done.mask).load(Ordering::Relaxed);
        let at = self.at.done.results as usize + slot as usize * size_of::<Done>();
        assert!(at + size_of::<Done>() <= self.done.len);
        // SAFETY: In the map, and the kernel is through with it.
        let done = unsafe { self.done.memory.add(at).cast::<Done>().read() };
        head.store(now.wrapping_add(1), Ordering::Release);
        Some(done)
    }
}

/// Begins all transfers before it waits for one; returns what each has said. With a time their ends
/// are polled for, that long after.
pub fn run(
    transfers: &mut [Transfer<'_>],
    polled: Option<Duration>,
) -> io::Result<Vec<io::Result<usize>>> {
    if transfers.is_empty() {
        return Ok(Vec::new());
    }
    let vectors: Vec<_> = transfers.iter_mut().map(|t| t.buffer.vectors()).collect();
    let mut ring = Ring::new(transfers.len() as u32, polled.is_some())?;
    for (i, (transfer, vectors)) in transfers.iter().zip(&vectors).enumerate() {
        ring.ask(Entry {
            operation: if transfer.write { 2 } else { 1 },
            fd: transfer.disk.as_raw_fd(),
            offset: transfer.offset,
            vectors: vectors.as_ptr() as u64,
            count: vectors.len() as u32,
            how: if transfer.durable {
                libc::RWF_DSYNC as u32
            } else {
                0
            },
            id: i as u64,
            ..Entry::default()
        });
    }
    let mut results: Vec<Option<i32>> = vec![None; transfers.len()];
    let mut left = transfers.len();
    if let Some(later) = polled.filter(|later| !later.is_zero()) {
        left -= ring.enter(left, 0)?;
        thread::sleep(later);
    }
    while results.contains(&None) {
        match ring.enter(left, 1) {
            Ok(count) => left -= count,
            Err(why) if matches!(why.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {}
            // What is under way has the buffers still.
            Err(why) => panic!("io_uring_enter: {why}"),
        }
        while let Some(done) = ring.done() {
            let before = results[done.id as usize].replace(done.result);
            assert!(before.is_none(), "transfer {} has ended twice", done.id);
        }
    }
    let result = |result: Option<i32>| match result.unwrap_or_default() {
        error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
        bytes => Ok(bytes as usize),
    };
    Ok(results.into_iter().map(result).collect())
}
