// SPDX-License-Identifier: GPL-2.0

//! Memory for disks to write to, to read from.

use crate::system::checked;
use std::{
    alloc::{alloc_zeroed, dealloc, Layout},
    fs::File,
    io,
    os::fd::AsRawFd,
};

/// The page that memory is cut along.
const PAGE: usize = 4096;

/// Memory that begins so many bytes after the beginning of a page.
struct Piece {
    memory: *mut u8,
    layout: Layout,
    skip: usize,
    len: usize,
}

impl Piece {
    fn new(skip: usize, len: usize) -> Self {
        let layout = Layout::from_size_align(skip + len.max(1), PAGE).expect("a piece of memory");
        // SAFETY: The layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        assert!(!memory.is_null(), "no memory");
        Self {
            memory,
            layout,
            skip,
            len,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: The memory has `skip + len` bytes, all of them initialized.
        unsafe { std::slice::from_raw_parts_mut(self.memory.add(self.skip), self.len) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: Allocated with this very layout.
        unsafe { dealloc(self.memory, self.layout) }
    }
}

/// A buffer in pieces that lie anywhere in memory.
pub struct Buffer {
    pieces: Vec<Piece>,
}

impl Buffer {
    /// Makes a buffer for `len` bytes, the first of them in pieces of (offset in page, length).
    pub fn new(len: usize, cuts: &[(usize, usize)]) -> Self {
        let mut left = len;
        let mut pieces = Vec::new();
        for &(skip, wanted) in cuts {
            let now = wanted.min(left);
            if now > 0 {
                pieces.push(Piece::new(skip, now));
                left -= now;
            }
        }
        if left > 0 {
            pieces.push(Piece::new(0, left));
        }
        Self { pieces }
    }

    /// Copies bytes to the pieces.
    pub fn fill(&mut self, mut bytes: &[u8]) {
        for piece in &mut self.pieces {
            let (now, rest) = bytes.split_at(piece.len);
            piece.bytes().copy_from_slice(now);
            bytes = rest;
        }
    }

    /// Copies the pieces into one row.
    pub fn row(&mut self) -> Vec<u8> {
        self.pieces.iter_mut().fold(Vec::new(), |mut row, piece| {
            row.extend_from_slice(piece.bytes());
            row
        })
    }

    /// The pieces, as system calls want them; they are there as long as the buffer.
    pub fn vectors(&mut self) -> Vec<libc::iovec> {
        self.pieces
            .iter_mut()
            .map(|piece| libc::iovec {
                iov_base: piece.bytes().as_mut_ptr().cast(),
                iov_len: piece.len,
            })
            .collect()
    }

    /// Writes the buffer; through all caches with `durable`.
    pub fn write(&mut self, disk: &File, offset: u64, durable: bool) -> io::Result<usize> {
        let vectors = self.vectors();
        let flags = if durable { libc::RWF_DSYNC } else { 0 };
        // SAFETY: The vectors describe the pieces, which outlive the call.
        checked(unsafe {
            libc::pwritev2(
                disk.as_raw_fd(),
                vectors.as_ptr(),
                vectors.len() as i32,
                offset as i64,
                flags,
            )
        } as i64)
    }

    /// Reads into the buffer.
    pub fn read(&mut self, disk: &File, offset: u64) -> io::Result<usize> {
        let vectors = self.vectors();
        // SAFETY: The vectors describe the pieces, which outlive the call; nobody else uses them.
        checked(unsafe {
            libc::preadv2(
                disk.as_raw_fd(),
                vectors.as_ptr(),
                vectors.len() as i32,
                offset as i64,
                0,
            )
        } as i64)
    }
}
