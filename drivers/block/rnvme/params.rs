// SPDX-License-Identifier: GPL-2.0

//! The parameters of the module, with the names that those of C's drivers have.

use super::names::module_params;
use kernel::{
    block::mq::possible_cpus,
    prelude::*,
    time::Delta, //
};

module_params! {
    io_queue_depth: int(check_depth) = 1024,
        "Number of entries of an I/O queue, at least 2, at most 4095. Default: 1024";
    write_queues: uint = 0,
        "Number of queues for writes alone, at most one for each CPU. Reads get queues of their \
        own then. Default: 0";
    poll_queues: uint = 0,
        "Number of queues for polled I/O, at most one for each CPU. Default: 0";
    sgl_threshold: uint = 32 << 10,
        "Average size of segments in bytes from which on a command has a scatter-gather list. 0: \
        only if a list of pages cannot do. Default: 32768";
    io_timeout: uint = 30, "Timeout of an I/O command in seconds. Default: 30";
    admin_timeout: uint = 60, "Timeout of an admin command in seconds. Default: 60";
    shutdown_timeout: uint = 5,
        "Timeout of a shutdown in seconds, if the controller does not ask for more. Default: 5";
    max_retries: uint = 5, "How often a command is sent again that has failed. Default: 5";
}

fn check_depth(depth: i32) -> Result {
    if (2..=4095).contains(&depth) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// The most seconds that a timeout may have: a day.
const MAX_TIMEOUT: u32 = 24 * 60 * 60;

/// Brings the numbers into range, so that sysfs shows the effective values.
pub(crate) fn sanitize() {
    let cpus = possible_cpus();
    for queues in [&WRITE_QUEUES, &POLL_QUEUES] {
        queues.set(queues.get().min(cpus));
    }
    for timeout in [&IO_TIMEOUT, &ADMIN_TIMEOUT, &SHUTDOWN_TIMEOUT] {
        timeout.set(timeout.get().clamp(1, MAX_TIMEOUT));
    }
    MAX_RETRIES.set(MAX_RETRIES.get().min(u8::MAX.into()));
}

/// Returns the most entries that an I/O queue may have.
pub(crate) fn queue_entries() -> u16 {
    // `check_depth` has seen it.
    IO_QUEUE_DEPTH.get() as u16
}

/// Returns the number of queues for writes alone, and of those for polled I/O.
pub(crate) fn special_queues() -> (u32, u32) {
    (WRITE_QUEUES.get(), POLL_QUEUES.get())
}

/// Returns from which average length of several segments on, in bytes, a scatter-gather list is
/// used; 0 means never.
#[inline]
pub(crate) fn sgl_threshold() -> u32 {
    SGL_THRESHOLD.get()
}

/// Returns the timeout of an I/O command.
pub(crate) fn io_timeout() -> Delta {
    Delta::from_secs(IO_TIMEOUT.get().into())
}

/// Returns the timeout of an administrative command.
pub(crate) fn admin_timeout() -> Delta {
    Delta::from_secs(ADMIN_TIMEOUT.get().into())
}

/// Returns for how long to wait for a shutdown, in milliseconds, if the controller does not say.
pub(crate) fn shutdown_timeout() -> u32 {
    SHUTDOWN_TIMEOUT.get() * 1000
}

/// Returns how often a command is sent again.
#[inline]
pub(crate) fn max_retries() -> u32 {
    MAX_RETRIES.get()
}
