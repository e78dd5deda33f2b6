// SPDX-License-Identifier: GPL-2.0

//! The stage at which requests wait for bandwidth.

use super::bucket::Bucket;
use kernel::{
    block::{
        mq::{
            Operations,
            RequestQueue, //
        },
        BlkResult,
        BlkStatus, //
    },
    prelude::*,
    sync::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
    time::Delta, //
};

/// The limit on the bandwidth of a disk.
///
/// The lock orders stopping the queues against starting them: who stops them has seen the bucket in
/// debt, so the tick that starts them is yet to come.
#[pin_data]
pub(crate) struct Throttle {
    #[pin]
    bucket: SpinLockIrq<Bucket>,
}

/// The time between two ticks.
const TICK: Delta = Delta::from_millis(20);

impl Throttle {
    /// Lets `mbps` MiB pass in a second, give or take a little as in C.
    pub(crate) fn new(mbps: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            bucket <- new_spinlock_irq!(Bucket::new(mbps), "Throttle::bucket"),
        })
    }

    /// Lets a request pass that moves so many bytes, or has it wait for a tick.
    pub(super) fn throttle<T: Operations>(
        &self,
        bytes: u32,
        queues: RequestQueue<'_, T>,
    ) -> BlkResult {
        let mut bucket = self.bucket.lock();
        if !bucket.take(bytes) {
            queues.stop();
            return Err(BlkStatus::RESOURCE);
        }
        if bucket.starts_ticking() {
            queues.start_timer(TICK);
        }
        Ok(())
    }

    /// Lets those pass that wait.
    pub(super) fn queue_timer_expired<T: Operations>(&self, queues: RequestQueue<'_, T>) {
        if self.bucket.lock().refill() {
            queues.start_timer(TICK);
        }
        queues.start();
    }

    /// Lets all pass from now on, those that wait with the next tick.
    pub(super) fn disable(&self) {
        self.bucket.lock().disable();
    }
}
