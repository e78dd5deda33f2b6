// SPDX-License-Identifier: GPL-2.0

//! A RAM disk, to show how a block driver is written.
//!
//! Load the module, then use `/dev/rust_ram` like any disk, for example
//! `mkfs.ext4 /dev/rust_ram && mount /dev/rust_ram /mnt`. Unloading forgets the data.

#![forbid(unsafe_code)]

use kernel::{
    alloc::{flags::__GFP_ZERO, Flags},
    block::{bio::Transfer, gendisk::*, limits::QueueLimits, mq::*, BlkResult, BlkStatus, Sectors},
    folio::FolioBox,
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::rcu,
    xarray::XArray,
};

module! {
    type: RustBlock,
    name: "rust_block",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: a RAM disk",
    license: "GPL",
}

/// The data of the module: the disk. Dropping it removes the disk.
struct RustBlock {
    _disk: GenDisk<RamDisk>,
}

impl kernel::Module for RustBlock {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // First the tag set: how many requests can be in flight, on how many queues.
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        // Then the disk. It serves I/O before `add` returns: the partition table is read.
        let memory = XArray::new(c"rust_ram", static_lock_class!());
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .limits(QueueLimits {
                max_hw_discard_sectors: Sectors::from_mebibytes(16),
                discard_granularity: PAGE_SIZE as u32,
                ..QueueLimits::default()
            })
            .build(c"rust_ram", memory)?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// The driver's data of the disk: its pages. Those that were never written to are missing.
type Memory = XArray<FolioBox>;

/// The driver. The type has no values: it stands for the implementation of `Operations`.
enum RamDisk {}

#[vtable]
impl Operations for RamDisk {
    // The first write to a page has to allocate it.
    type Context = Blocking;
    type QueueData = Memory;
    // No data per tag set, hardware queue or request, and no timers.
    type TagSetData = ();
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_memory: &Memory, _set: &(), _index: u32) -> impl PinInit<(), Error> {
        Ok::<(), Error>(())
    }

    fn init_request(_set: &()) -> impl PinInit<()> {}

    // Until the request is started, it could be rejected, and be submitted again later.
    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        let (memory, context) = (rq.queue_data(), rq.context());
        let rq = rq.start();
        let outcome = serve(memory, &rq, context.gfp());
        // Consumes the request: to end it twice does not compile.
        rq.end(outcome);
        Ok(())
    }
}

/// Carries out a request page by page.
fn serve(memory: &Memory, rq: &StartedRequest<RamDisk>, flags: Flags) -> BlkResult {
    let mut transfer = rq.transfer();
    let (mut at, mut left) = (rq.sector().bytes() as usize, rq.bytes() as usize);
    while left > 0 {
        let (index, offset) = (at / PAGE_SIZE, at % PAGE_SIZE);
        let len = left.min(PAGE_SIZE - offset);
        // A page that is found here is not freed before the reader is dropped.
        let reader = rcu::read_lock();
        match (&mut transfer, memory.load(&reader, index)) {
            // The type of the request's memory depends on the direction.
            (Transfer::FromDisk(to), Some(page)) => to.copy_from_folio(page, offset, len)?,
            (Transfer::FromDisk(to), None) => to.zero(len),
            (Transfer::ToDisk(from), Some(page)) => from.copy_to_folio(page, offset, len)?,
            (Transfer::ToDisk(_), None) => {
                // To wait for memory is not allowed in a read-side critical section.
                drop(reader);
                let page = FolioBox::new(0, flags | __GFP_ZERO, ())?;
                match memory.insert(index, page, flags) {
                    // `EBUSY`: another request has added the page meanwhile.
                    Err(error) if error.error != EBUSY => return Err(error.error.into()),
                    _ => continue,
                }
            }
            (Transfer::None, _) if rq.op() == Op::Discard && len < PAGE_SIZE => (),
            (Transfer::None, _) if rq.op() == Op::Discard => drop(memory.remove(index)),
            (Transfer::None, _) => return Err(BlkStatus::NOTSUPP),
        }
        (at, left) = (at + len, left - len);
    }
    Ok(())
}
