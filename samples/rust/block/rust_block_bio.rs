// SPDX-License-Identifier: GPL-2.0

//! A RAM disk that gets bios instead of requests.
//!
//! It has no tags, no I/O scheduler and no hardware queues: each bio is served in the task that
//! submits it. Compare it with `rust_block.rs`, which gets requests. The disk is `/dev/rust_bio`.

#![forbid(unsafe_code)]

use kernel::{
    alloc::flags::__GFP_ZERO,
    block::{
        bio::Transfer, bio_based::*, gendisk::*, limits::QueueLimits, mq::Op, BlkResult, BlkStatus,
        Sectors,
    },
    folio::FolioBox,
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::rcu,
    xarray::XArray,
};

module! {
    type: RustBlockBio,
    name: "rust_block_bio",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: a RAM disk that gets bios",
    license: "GPL",
}

struct RustBlockBio {
    _disk: GenDisk<RamDisk, Bios>,
}

impl kernel::Module for RustBlockBio {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let disk = GenDiskBuilder::bio_based(static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .limits(QueueLimits {
                max_hw_discard_sectors: Sectors::from_mebibytes(16),
                discard_granularity: PAGE_SIZE as u32,
                ..QueueLimits::default()
            })
            .build(c"rust_bio", XArray::new(c"rust_bio", static_lock_class!()))?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// The driver.
enum RamDisk {}

#[vtable]
impl Operations for RamDisk {
    /// The pages of the disk. Those that were never written to are missing.
    type QueueData = XArray<FolioBox>;

    fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
        // Without a write cache, the block layer asks for no flushes.
        let outcome = serve(&bio);
        bio.end(outcome);
    }
}

/// Carries out a bio page by page.
fn serve(bio: &SubmittedBio<'_, RamDisk>) -> BlkResult {
    let (memory, flags, mut transfer) = (bio.queue_data(), bio.gfp(), bio.transfer());
    // A bio that must not wait is submitted again, by a task that may.
    let full = match bio.is_nowait() {
        true => BlkStatus::AGAIN,
        false => BlkStatus::NOSPC,
    };
    let (mut at, mut left) = (bio.sector().bytes() as usize, bio.bytes() as usize);
    while left > 0 {
        let (index, offset) = (at / PAGE_SIZE, at % PAGE_SIZE);
        let len = left.min(PAGE_SIZE - offset);
        let reader = rcu::read_lock();
        match (&mut transfer, memory.load(&reader, index)) {
            (Transfer::FromDisk(to), Some(page)) => to.copy_from_folio(page, offset, len)?,
            (Transfer::FromDisk(to), None) => to.zero(len),
            (Transfer::ToDisk(from), Some(page)) => from.copy_to_folio(page, offset, len)?,
            (Transfer::ToDisk(_), None) => {
                drop(reader);
                let page = FolioBox::new(0, flags | __GFP_ZERO, ()).map_err(|_| full)?;
                match memory.insert(index, page, flags) {
                    // `EBUSY`: another bio has added the page meanwhile.
                    Err(error) if error.error != EBUSY => return Err(full),
                    _ => continue,
                }
            }
            (Transfer::None, _) if bio.op() == Op::Discard && len < PAGE_SIZE => (),
            (Transfer::None, _) if bio.op() == Op::Discard => drop(memory.remove(index)),
            (Transfer::None, _) => return Err(BlkStatus::NOTSUPP),
        }
        (at, left) = (at + len, left - len);
    }
    Ok(())
}
