// SPDX-License-Identifier: GPL-2.0

//! A disk that shows another block device, from a sector on.
//!
//! Each bio is served by a clone of it, which the other device gets. The disk is
//! `/dev/rust_linear`.

#![forbid(unsafe_code)]

use kernel::{
    block::{bdev::*, bio_based::*, gendisk::*, BlkStatus, Sectors},
    module_params,
    prelude::*,
    static_lock_class,
};

module! {
    type: RustBlockLinear,
    name: "rust_block_linear",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: a disk that shows another one",
    license: "GPL",
}

module_params! {
    module: "rust_block_linear";

    device: string, "Block device to show, by its path";
    start: ulong = 0, "First sector to show. Default: 0";
}

struct RustBlockLinear {
    _disk: GenDisk<Linear, Bios>,
}

impl kernel::Module for RustBlockLinear {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let lower = BdevFile::open_by_path(&DEVICE.get(), Access::ReadWrite)?;
        let start = Sectors(START.get() as u64);
        let capacity = lower.capacity().0.checked_sub(start.0).ok_or(EINVAL)?;
        let limits = lower.limits()?;
        if start
            .bytes()
            .checked_rem(u64::from(limits.logical_block_size))
            != Some(0)
        {
            return Err(EINVAL);
        }
        let disk = GenDiskBuilder::bio_based(static_lock_class!())
            .capacity(Sectors(capacity))
            .limits(limits)
            .build(c"rust_linear", Ok(Linear { lower, start }))?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// The driver, which is also its data of the disk.
struct Linear {
    lower: BdevFile,
    start: Sectors,
}

#[vtable]
impl Operations for Linear {
    type QueueData = Self;

    /// I/O goes on without free memory, a few bios at a time.
    const RESERVED_CLONES: u32 = 16;

    fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
        let this = bio.queue_data();
        let mut clones = bio.keep().into_clones();
        let whole = Sectors::ZERO..clones.sectors();
        let sector = clones.sector() + this.start;
        // A flush, and what must be on stable storage, is a matter of the other device.
        let submitted = clones.submit(whole, &this.lower, sector);
        // The bio ends when the clone has ended, with its result.
        clones.end(submitted.map_err(BlkStatus::from));
    }
}
