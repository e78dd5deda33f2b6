// SPDX-License-Identifier: GPL-2.0

//! A disk of zeros that is removed under load, to show how a disk is taken down.
//!
//! ```text
//!     /sys/kernel/config/rust_block_hotplug
//!       plugged     1 adds /dev/rust_hotplug, 0 removes it
//!       held        1 keeps requests in flight, 0 lets them go on
//! ```

#![forbid(unsafe_code)]

use kernel::{
    block::{
        bio::Transfer,
        gendisk::{
            GenDisk,
            GenDiskBuilder, //
        },
        mq::{
            IdleRequest,
            NoTimer,
            NonBlocking,
            Op,
            Operations,
            QueueResult,
            RequestList,
            StartedRequest,
            TagSet,
            TagSetOptions, //
        },
        BlkStatus,
        Sectors, //
    },
    configfs::{
        Attribute,
        Group,
        NoChild,
        Subsystem,
        Text, //
    },
    new_mutex,
    new_spinlock, //
    prelude::*,
    static_lock_class,
    sync::{
        Mutex,
        SpinLock, //
    },
};

module! {
    type: RustBlockHotplug,
    name: "rust_block_hotplug",
    authors: ["rnull contributors"],
    description: "Rust block driver sample: a disk that comes and goes",
    license: "GPL",
}

struct RustBlockHotplug {
    _subsystem: Subsystem<Slot>,
}

impl kernel::Module for RustBlockHotplug {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let slot = try_pin_init!(Slot {
            disk <- new_mutex!(None, "Slot::disk"),
        });
        Ok(Self {
            _subsystem: Subsystem::new(c"rust_block_hotplug", module, slot)?,
        })
    }
}

/// The place where the disk is plugged in.
///
/// `disk` is held while a disk is removed, which waits for all requests. That is possible because
/// ending a request does not take it.
#[pin_data]
struct Slot {
    #[pin]
    disk: Mutex<Option<PluggedDisk>>,
}

impl Slot {
    fn store_plugged(&self, text: &Text) -> Result {
        let plugged = text.kstrtobool()?;
        let mut disk = self.disk.lock();
        if !plugged {
            *disk = None;
        } else if disk.is_none() {
            *disk = Some(PluggedDisk::add()?);
        }
        Ok(())
    }

    fn store_held(&self, text: &Text) -> Result {
        let state = match text.kstrtobool()? {
            true => GateState::Closed,
            false => GateState::Open,
        };
        let disk = self.disk.lock();
        disk.as_ref().ok_or(ENODEV)?.0.queue_data().set(state);
        Ok(())
    }
}

impl Group for Slot {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        Attribute::wo(c"plugged", Self::store_plugged),
        Attribute::wo(c"held", Self::store_held),
    ];
}

/// The disk. Dropping it takes it down.
struct PluggedDisk(GenDisk<GatedDisk>);

impl PluggedDisk {
    fn add() -> Result<Self> {
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(16))
            .build(c"rust_hotplug", Gate::new())?
            .add()?;
        Ok(Self(disk))
    }
}

impl Drop for PluggedDisk {
    fn drop(&mut self) {
        // Dropping the `GenDisk`, which follows, waits until all requests have ended. So those that
        // the driver keeps have to end first, and it must not keep any more.
        self.0.queue_data().set(GateState::Removed);
    }
}

#[derive(PartialEq)]
enum GateState {
    /// Requests pass.
    Open,
    /// Requests wait.
    Closed,
    /// Requests pass, and the state does not change any more.
    Removed,
}

/// The driver's data of the disk: the requests that wait.
#[pin_data]
struct Gate {
    #[pin]
    inner: SpinLock<(GateState, RequestList<GatedDisk>)>,
}

impl Gate {
    fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            inner <- new_spinlock!((GateState::Open, RequestList::new()), "Gate::inner"),
        })
    }

    fn set(&self, new: GateState) {
        let mut waiting = {
            let (state, requests) = &mut *self.inner.lock();
            if *state == GateState::Removed {
                return;
            }
            *state = new;
            match state {
                GateState::Closed => return,
                _ => requests.take(),
            }
        };
        while let Some(rq) = waiting.pop_front() {
            serve(rq);
        }
    }

    fn pass(&self, rq: StartedRequest<GatedDisk>) {
        {
            let (state, requests) = &mut *self.inner.lock();
            if *state == GateState::Closed {
                requests.push_back(rq);
                return;
            }
        }
        serve(rq);
    }
}

fn serve(rq: StartedRequest<GatedDisk>) {
    if let Transfer::FromDisk(mut memory) = rq.transfer() {
        memory.fill(0);
    }
    rq.end(Ok(()));
}

/// The driver.
enum GatedDisk {}

#[vtable]
impl Operations for GatedDisk {
    type Context = NonBlocking;
    type TagSetData = ();
    type QueueData = Gate;
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_gate: &Gate, _set: &(), _index: u32) -> impl PinInit<(), Error> {
        Ok::<(), Error>(())
    }

    fn init_request(_set: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _last: bool) -> QueueResult<'q, Self> {
        if !matches!(rq.op(), Op::Read | Op::Write | Op::Flush) {
            return Err(rq.reject(BlkStatus::NOTSUPP));
        }
        let gate = rq.queue_data();
        gate.pass(rq.start());
        Ok(())
    }
}
