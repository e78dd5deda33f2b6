// SPDX-License-Identifier: GPL-2.0

//! The limits that this machine sets.

use crate::config::SystemLimits;
use kernel::{
    block::mq,
    cpu,
    page::PAGE_SIZE,
    page_store::WriteCache, //
};

/// Returns what settings are measured against here, with so many polled queues at most.
pub(crate) fn detect(poll_queues: u32) -> SystemLimits {
    let page_size = PAGE_SIZE as u32;
    SystemLimits {
        cpus: cpu::nr_cpu_ids(),
        nodes: mq::online_nodes(),
        poll_queues,
        page_size,
        // The page cache needs large folios for blocks that exceed a page.
        largest_block: if cfg!(CONFIG_TRANSPARENT_HUGEPAGE) {
            64 << 10
        } else {
            page_size
        },
        smallest_cached_block: WriteCache::SMALLEST_BLOCK,
    }
}
