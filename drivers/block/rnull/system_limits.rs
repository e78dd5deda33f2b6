// SPDX-License-Identifier: GPL-2.0

//! The limits of this system.

use crate::{
    cache,
    config::SystemLimits, //
};
use kernel::{
    block::{
        limits,
        mq, //
    },
    cpu,
    page::PAGE_SIZE, //
};

/// Returns the limits of this system, with a maximum of `poll_queues` polled queues.
pub(crate) fn detect(poll_queues: u32) -> SystemLimits {
    let page_size = PAGE_SIZE as u32;
    SystemLimits {
        cpus: cpu::nr_cpu_ids(),
        nodes: mq::online_nodes(),
        poll_queues,
        page_size,
        // The page cache needs large folios for blocks larger than a page.
        max_block_size: if cfg!(CONFIG_TRANSPARENT_HUGEPAGE) {
            64 << 10
        } else {
            page_size
        },
        min_cached_block_size: cache::SMALLEST_BLOCK,
        max_zones: limits::max_zones(),
    }
}
