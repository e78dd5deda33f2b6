// SPDX-License-Identifier: GPL-2.0

//! Direct I/O, one transfer at a time or a batch of them in flight together.

use crate::{
    command::{Answer, Data, Engine, Transfer},
    pattern,
    system::verdict,
};
use io_uring::{opcode, types::Fd, IoUring};
use nix::{
    errno::Errno,
    sys::uio::{preadv, pwritev},
};
use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice, IoSliceMut},
    ops::Range,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

/// The page within which memory is cut.
pub const PAGE: usize = 4096;

/// When a transfer with an `io_timeout` of 200 ms has timed out for certain: the block layer checks
/// every second.
const LATE: Duration = Duration::from_millis(2500);

/// Opens a disk for direct I/O, with all writes durable for `fua`.
pub fn open_disk(path: &Path, fua: bool) -> io::Result<File> {
    let durable = if fua { libc::O_DSYNC } else { 0 };
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT | durable)
        .open(path)
}

/// Bytes at a given offset in a page.
pub struct Piece {
    memory: Vec<u8>,
    range: Range<usize>,
}

impl Piece {
    pub fn new(skip: usize, bytes: &[u8]) -> Self {
        let mut memory = vec![0; PAGE + skip + bytes.len()];
        let start = memory.as_ptr().align_offset(PAGE) + skip;
        let range = start..start + bytes.len();
        memory[range.clone()].copy_from_slice(bytes);
        Self { memory, range }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }

    fn slice(&mut self) -> IoSliceMut<'_> {
        IoSliceMut::new(&mut self.memory[self.range.clone()])
    }
}

/// The memory of a transfer, filled before it starts.
fn pieces(transfer: &Transfer) -> Vec<Piece> {
    let bytes = match transfer.data {
        Some(Data { seed, .. }) => pattern::bytes(transfer.offset, transfer.len, seed),
        None => vec![pattern::UNTOUCHED; transfer.len],
    };
    let mut rest = &bytes[..];
    let mut pieces = Vec::new();
    for &(skip, len) in transfer.cuts.iter().chain([&(0, transfer.len)]) {
        let (piece, after) = rest.split_at(len.min(rest.len()));
        if !piece.is_empty() {
            pieces.push(Piece::new(skip, piece));
        }
        rest = after;
    }
    pieces
}

/// A transfer with its memory, and the disk if it could be opened.
struct Request<'a> {
    transfer: &'a Transfer,
    disk: nix::Result<File>,
    pieces: Vec<Piece>,
}

/// Does transfers, in a batch or one after the other, and waits for their ends.
pub fn run(
    transfers: &[Transfer],
    engine: Option<Engine>,
    node: impl Fn(&str) -> PathBuf,
) -> Vec<Answer> {
    let request = |transfer| Request::new(transfer, node(&transfer.disk));
    let mut requests: Vec<_> = transfers.iter().map(request).collect();
    let results: Vec<_> = match engine {
        None => requests.iter_mut().map(Request::run).collect(),
        Some(Engine::Threads) => thread::scope(|scope| {
            let spawn = |request| scope.spawn(|| Request::run(request));
            let threads: Vec<_> = requests.iter_mut().map(spawn).collect();
            let results = threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"));
            results.collect()
        }),
        Some(Engine::IoUring) => io_uring(&mut requests, None),
        Some(Engine::Polled) => io_uring(&mut requests, Some(Duration::ZERO)),
        Some(Engine::Late) => io_uring(&mut requests, Some(LATE)),
    };
    let answers = requests.into_iter().zip(results);
    answers
        .map(|(request, result)| request.answer(result))
        .collect()
}

impl<'a> Request<'a> {
    fn new(transfer: &'a Transfer, path: PathBuf) -> Self {
        let disk = open_disk(&path, transfer.data.is_some_and(|data| data.fua));
        Self {
            transfer,
            disk: disk.map_err(|why| Errno::from_raw(why.raw_os_error().unwrap_or(0))),
            pieces: pieces(transfer),
        }
    }

    /// Transfers, and waits for the end.
    fn run(&mut self) -> nix::Result<usize> {
        let disk = self.disk.as_ref().map_err(|why| *why)?;
        let offset = self.transfer.offset as i64;
        if self.transfer.data.is_some() {
            let slice = |piece| IoSlice::new(Piece::bytes(piece));
            pwritev(
                disk,
                &self.pieces.iter().map(slice).collect::<Vec<_>>(),
                offset,
            )
        } else {
            let slices = self.pieces.iter_mut().map(Piece::slice);
            preadv(disk, &mut slices.collect::<Vec<_>>(), offset)
        }
    }

    fn answer(self, result: nix::Result<usize>) -> Answer {
        let bytes = self.pieces.iter().flat_map(Piece::bytes);
        Answer {
            text: match result {
                Ok(done) if done != self.transfer.len => format!("{done} bytes"),
                result => verdict(result),
            },
            bytes: match self.transfer.data {
                Some(_) => Vec::new(),
                None => bytes.copied().collect(),
            },
        }
    }
}

/// Submits all requests before it waits for one; polls for them after a delay, if there is one.
fn io_uring(requests: &mut [Request<'_>], poll: Option<Duration>) -> Vec<nix::Result<usize>> {
    let mut builder = IoUring::builder();
    if poll.is_some() {
        builder.setup_iopoll();
    }
    let ring = builder.build(requests.len() as u32);
    let mut ring: IoUring = ring.expect("io_uring_setup");
    let mut results: Vec<Option<nix::Result<usize>>> = vec![None; requests.len()];
    let mut slices = Vec::new();
    for (i, request) in requests.iter_mut().enumerate() {
        let disk = match &request.disk {
            Ok(disk) => Fd(disk.as_raw_fd()),
            Err(why) => {
                results[i] = Some(Err(*why));
                continue;
            }
        };
        // An `IoSliceMut` is a `struct iovec`.
        let mut iovecs: Vec<_> = request.pieces.iter_mut().map(Piece::slice).collect();
        let (iovec, count) = (iovecs.as_mut_ptr().cast(), iovecs.len() as u32);
        let offset = request.transfer.offset;
        let entry = match request.transfer.data {
            Some(_) => opcode::Writev::new(disk, iovec, count)
                .offset(offset)
                .build(),
            None => opcode::Readv::new(disk, iovec, count)
                .offset(offset)
                .build(),
        };
        slices.push(iovecs);
        // SAFETY: The slices are kept, and this function waits for the end of each request.
        unsafe { ring.submission().push(&entry.user_data(i as u64)) }.expect("room for all");
    }
    if let Some(delay) = poll.filter(|delay| !delay.is_zero()) {
        // `submit` would poll once.
        // SAFETY: There is no argument.
        let submitted = unsafe {
            ring.submitter()
                .enter::<()>(slices.len() as u32, 0, 0, None)
        };
        submitted.expect("io_uring_enter");
        thread::sleep(delay);
    }
    while results.contains(&None) {
        match ring.submit_and_wait(1).map_err(|why| why.raw_os_error()) {
            Ok(_) | Err(Some(libc::EINTR | libc::EAGAIN)) => {}
            // Not a panic, which would free memory that is in use.
            Err(_) => process::abort(),
        }
        for entry in ring.completion() {
            let number = entry.result();
            let result = usize::try_from(number).map_err(|_| Errno::from_raw(-number));
            let before = results[entry.user_data() as usize].replace(result);
            assert!(before.is_none(), "a request has completed twice");
        }
    }
    results.into_iter().flatten().collect()
}
