// SPDX-License-Identifier: GPL-2.0

//! A RAM disk, to show how a block driver is written.
//!
//! Load the module, then use `/dev/rust_ram` like any disk, for example
//! `mkfs.ext4 /dev/rust_ram && mount /dev/rust_ram /mnt`. Unloading forgets the data.

#![forbid(unsafe_code)]

use kernel::{
    block::{
        bio::Transfer,
        gendisk::{
            GenDisk,
            GenDiskBuilder, //
        },
        mq::{
            Blocking,
            IdleRequest,
            NoTimer,
            Op,
            Operations,
            QueueContext,
            QueueResult,
            StartedRequest,
            TagSet,
            TagSetOptions, //
        },
        BlkResult,
        BlkStatus,
        Sectors, //
    },
    page_store::PageStore,
    prelude::*,
    static_lock_class, //
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
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .build(
                c"rust_ram",
                try_pin_init!(Memory { pages <- PageStore::new(512) }),
            )?
            .add()?;
        Ok(Self { _disk: disk })
    }
}

/// The driver's data of the disk: a sparse array of pages.
#[pin_data]
struct Memory {
    #[pin]
    pages: PageStore,
}

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
        let outcome = serve(&memory.pages, context, &rq);
        // Consumes the request: to end it twice does not compile.
        rq.end(outcome);
        Ok(())
    }
}

/// Transfers the data of a request. The type of its memory depends on the direction.
fn serve(
    pages: &PageStore,
    context: QueueContext<'_, Blocking>,
    rq: &StartedRequest<RamDisk>,
) -> BlkResult {
    let (at, len) = (rq.sector().bytes(), rq.bytes());
    match rq.transfer() {
        Transfer::FromDisk(mut memory) => pages.read(context, at, &mut memory, len)?,
        Transfer::ToDisk(mut memory) => pages.write(context, at, &mut memory, len)?,
        Transfer::None if rq.op() == Op::Flush => {}
        Transfer::None => return Err(BlkStatus::NOTSUPP),
    }
    Ok(())
}
