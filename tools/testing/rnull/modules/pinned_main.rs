// SPDX-License-Identifier: GPL-2.0

//! A module to which others hold references while it is unloaded.
//!
//! Its initialisation can fail, and a work item can drop its directory where C does not allow that.

#![forbid(unsafe_code)]

use kernel::{
    block::{
        gendisk::{
            GenDisk,
            GenDiskBuilder, //
        },
        mq::{
            Blocking,
            IdleRequest,
            NoTimer,
            Operations,
            QueueResult,
            TagSet,
            TagSetOptions, //
        },
        Sectors, //
    },
    configfs::{
        Attribute,
        Group,
        NoChild,
        Subsystem, //
    },
    prelude::*,
    static_lock_class,
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    },
    workqueue, //
};

module! {
    type: Pinned,
    name: "pinned",
    authors: ["rnull contributors"],
    description: "Module with foreign references",
    license: "GPL",
    params: {
        fail: u32 {
            default: 0,
            description: "Initialisation fails after so many milliseconds",
        },
        late: u32 {
            default: 0,
            description: "A work item drops the directory, then spins for so many milliseconds",
        },
    },
}

/// What lives while the module is loaded.
struct Pinned {
    _directory: Option<Subsystem<Top>>,
    _disk: GenDisk<Disk>,
}

impl kernel::Module for Pinned {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let tags = TagSet::new(TagSetOptions::default(), Ok(()))?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(c"pinned", Ok(()))?
            .add()?;
        let mut directory = Some(Subsystem::new(c"pinned", module, Ok(Top))?);
        match module_parameters::fail.value() {
            0 => {}
            milliseconds => {
                fsleep(Delta::from_millis(milliseconds.into()));
                return Err(EIO);
            }
        }
        match module_parameters::late.value() {
            0 => {}
            milliseconds => {
                let directory = directory.take();
                workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
                    // The module is being unloaded meanwhile, and waits for the directory.
                    fsleep(Delta::from_millis(2000));
                    drop(directory);
                    let start = Instant::<Monotonic>::now();
                    while start.elapsed() < Delta::from_millis(milliseconds.into()) {
                        core::hint::spin_loop();
                    }
                    pr_info!("the work item is still there\n");
                })?;
            }
        }
        Ok(Self {
            _directory: directory,
            _disk: disk,
        })
    }
}

/// The data behind the top directory.
struct Top;

impl Group for Top {
    type Child = Child;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::ro(c"text", |_top, page| writeln!(page, "text"))];

    fn make_group(&self, _name: &CStr) -> impl PinInit<Child, Error> {
        Ok(Child)
    }
}

/// The data behind a directory made in the top directory.
struct Child;

impl Group for Child {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[];
}

impl Drop for Child {
    fn drop(&mut self) {
        pr_info!("a child is dropped\n");
    }
}

/// A driver that completes each request at once.
enum Disk {}

#[vtable]
impl Operations for Disk {
    type Context = Blocking;
    type TagSetData = ();
    type QueueData = ();
    type HwData = ();
    type RequestData = ();
    type Timer = NoTimer;

    fn init_hw_queue(_: &(), _: &(), _: u32) -> impl PinInit<(), Error> {
        Ok::<(), Error>(())
    }

    fn init_request(_: &()) -> impl PinInit<()> {}

    fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
        rq.start().end(Ok(()));
        Ok(())
    }
}
