// SPDX-License-Identifier: GPL-2.0

//! The module's parameters.
//!
//! They apply to the devices that are made when the module is loaded, and are the defaults of all
//! others.

use crate::{
    config::{
        self,
        Config, //
    },
    device::Defaults,
    names, //
    slow_path::FaultAttrs,
    system_limits,
};
#[cfg(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION)]
use kernel::fault::FaultSettings;
use kernel::prelude::*;

names::module_params! {
    bs: int = 512, "Logical block size in bytes, at most a page. Default: 512";
    blocking: bool = false, "Serve requests where they may sleep. Default: N";
    cache_size: ulong = 0, "Size of a volatile cache in MiB, with memory_backed. Default: 0 (none)";
    completion_nsec: ulong = 10_000, "Nanoseconds a request takes with irqmode=2. Default: 10000";
    discard: bool = false, "Take discards, with memory_backed. Default: N";
    fua: bool = true, "Let single writes go past the cache. Default: Y";
    gb: int = 250, "Size in GiB. Default: 250";
    home_node: int = -1, "NUMA node to take memory from. Default: -1 (any)";
    hw_queue_depth: int = 64, "Requests of each hardware queue. Default: 64";
    irqmode: int(check_irqmode) = 1, "How requests end: 0-none, 1-softirq, 2-timer. Default: 1";
    max_sectors: int = 0, "Longest request in sectors of 512 bytes. Default: 0 (255)";
    mbps: uint = 0, "Most MiB to move in a second. Default: 0 (no limit)";
    memory_backed: bool = false, "Keep the data in memory. Default: N";
    no_sched: int = 0, "No I/O scheduler, unless one is asked for. Default: 0";
    pub(crate) nr_devices: uint = 1, "Number of devices to make. Default: 1";
    poll_queues: int = 1, "Number of polled queues, of any device at most. Default: 1";
    queue_mode: int(check_queue_mode) = 2, "Interface to the block layer: 2-multiqueue. Default: 2";
    rotational: bool = false, "Claim to seek. Default: N";
    shared_tag_bitmap: bool = false, "Hardware queues of a disk share their requests. Default: N";
    shared_tags: bool = false, "All disks share their requests. Default: N";
    submit_queues: int = 1, "Number of submission queues. Default: 1";
    use_per_node_hctx: bool = false, "One submission queue for each NUMA node. Default: N";
    virt_boundary: bool = false, "Segments of a request meet at page boundaries only. Default: N";
}

#[cfg(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION)]
names::module_params! {
    init_hctx: string, "Fail to make queues: <interval>,<probability>,<space>,<times>";
    requeue: string, "Queue requests again: <interval>,<probability>,<space>,<times>";
    timeout: string, "Lose requests: <interval>,<probability>,<space>,<times>";
}

fn check_irqmode(mode: i32) -> Result {
    check_mode(mode, config::IRQ_TIMER)
}

fn check_queue_mode(mode: i32) -> Result {
    check_mode(mode, config::QUEUE_MQ)
}

fn check_mode(mode: i32, last: u32) -> Result {
    match u32::try_from(mode) {
        Ok(mode) if mode <= last => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Brings values into range, so that sysfs shows the effective ones.
///
/// # Errors
///
/// `EINVAL` if no device can be made with these values.
pub(crate) fn sanitize() -> Result {
    let limits = system_limits::detect(POLL_QUEUES.get() as u32);

    let block_size = config::parameter_block_size(BS.get(), &limits);
    if block_size != BS.get() {
        pr_warn!("bs={} is no more than {block_size} here\n", BS.get());
        BS.set(block_size);
    }

    let node = config::parameter_node(HOME_NODE.get(), &limits);
    if node != HOME_NODE.get() {
        pr_err!("home_node={} is not online\n", HOME_NODE.get());
        HOME_NODE.set(node);
    }

    let per_node = USE_PER_NODE_HCTX.get();
    SUBMIT_QUEUES.set(config::parameter_queues(
        SUBMIT_QUEUES.get(),
        per_node,
        &limits,
    ));

    // Checked here, since `nr_devices` may be zero.
    if settings().wants_requests() {
        pr_err!("queue_mode=1 is no longer available\n");
        return Err(EINVAL);
    }
    Ok(())
}

/// Returns the defaults of a new device.
///
/// # Errors
///
/// `EINVAL` if the attributes of a fault cannot be parsed.
pub(crate) fn defaults() -> Result<Defaults> {
    Ok(Defaults {
        settings: settings(),
        fault_attrs: fault_attrs()?,
    })
}

#[cfg(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION)]
fn fault_attrs() -> Result<FaultAttrs> {
    let read = |text: &CStr| {
        if text.is_empty() {
            return Ok(FaultSettings::default());
        }
        Ok::<_, Error>(FaultSettings {
            // Faults requested by module parameter are not logged.
            verbose: 0,
            ..FaultSettings::parse(text)?
        })
    };
    Ok(FaultAttrs {
        timeout: read(&TIMEOUT.get())?,
        requeue: read(&REQUEUE.get())?,
        init_hctx: read(&INIT_HCTX.get())?,
    })
}

#[cfg(not(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION))]
fn fault_attrs() -> Result<FaultAttrs> {
    Ok(FaultAttrs::default())
}

fn settings() -> Config {
    Config {
        badblocks_once: false,
        badblocks_partial_io: false,
        blocking: BLOCKING.get(),
        blocksize: BS.get() as u32,
        cache_size: CACHE_SIZE.get(),
        completion_nsec: COMPLETION_NSEC.get(),
        discard: DISCARD.get(),
        fua: FUA.get(),
        home_node: HOME_NODE.get() as u32,
        hw_queue_depth: HW_QUEUE_DEPTH.get() as u32,
        index: 0,
        irqmode: IRQMODE.get() as u32,
        mbps: MBPS.get(),
        max_sectors: MAX_SECTORS.get() as u32,
        memory_backed: MEMORY_BACKED.get(),
        no_sched: NO_SCHED.get() != 0,
        poll_queues: POLL_QUEUES.get() as u32,
        queue_mode: QUEUE_MODE.get() as u32,
        rotational: ROTATIONAL.get(),
        shared_tag_bitmap: SHARED_TAG_BITMAP.get(),
        shared_tags: SHARED_TAGS.get(),
        // Wraps like C's `int`, and is sign-extended.
        size: GB.get().wrapping_mul(1024) as usize,
        submit_queues: SUBMIT_QUEUES.get() as u32,
        use_per_node_hctx: USE_PER_NODE_HCTX.get(),
        virt_boundary: VIRT_BOUNDARY.get(),
    }
}
