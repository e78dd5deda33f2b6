// SPDX-License-Identifier: GPL-2.0

//! The stage at which requests are throttled.

use super::token_bucket::TokenBucket;
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
/// The queues are stopped under the lock, and only while the bucket is empty. The timer that
/// refills it restarts them afterwards, so a stop never comes after the last restart.
#[pin_data]
pub(crate) struct Throttle {
    #[pin]
    bucket: SpinLockIrq<TokenBucket>,
}

/// The time between two refills.
const PERIOD: Delta = Delta::from_millis(20);

impl Throttle {
    /// Limits the bandwidth to `mbps` MiB per second, rounded as in null_blk.
    pub(crate) fn new(mbps: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            bucket <- new_spinlock_irq!(TokenBucket::new(mbps), "Throttle::bucket"),
        })
    }

    /// Takes `bytes` from the bucket. If it is empty, stops the queues and returns the status to
    /// reject the request with.
    pub(super) fn take<T: Operations>(&self, bytes: u32, queues: RequestQueue<'_, T>) -> BlkResult {
        let mut bucket = self.bucket.lock();
        if !bucket.take(bytes) {
            queues.stop();
            return Err(BlkStatus::RESOURCE);
        }
        if bucket.claim_timer() {
            queues.start_timer(PERIOD);
        }
        Ok(())
    }

    /// Refills the bucket, and restarts the queues.
    pub(super) fn refill<T: Operations>(&self, queues: RequestQueue<'_, T>) {
        if self.bucket.lock().refill() {
            queues.start_timer(PERIOD);
        }
        queues.start();
    }

    /// Lifts the limit. Requests that wait are dispatched when the timer expires.
    pub(super) fn disable(&self) {
        self.bucket.lock().disable();
    }
}
