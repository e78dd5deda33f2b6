// SPDX-License-Identifier: GPL-2.0

//! The number of I/O queues of each kind.

use kernel::{
    block::mq::{
        CpuMap,
        CpuMaps,
        QueueCounts, //
    },
    pci::vectors::IrqVectors,
    prelude::*, //
};

/// Returns which CPUs each queue serves.
pub(crate) fn cpu_maps(counts: QueueCounts, vectors: &IrqVectors) -> Result<CpuMaps> {
    let [default, read, ..] = vectors.sets();
    let map = |count, vectors_of_set, first| -> Result<Option<CpuMap>> {
        if count == 0 {
            return Ok(None);
        }
        // The vectors serve all CPUs only together.
        let affinity = |queue| {
            (count == vectors_of_set)
                .then(|| vectors.affinity(first + queue))
                .flatten()
        };
        CpuMap::new(count, affinity).map(Some)
    };
    Ok(CpuMaps {
        default: map(counts.default, default, 1)?,
        read: map(counts.read, read, 1 + default)?,
    })
}

/// Returns how many queues of each kind are among the first ones.
pub(crate) fn first_of(counts: QueueCounts, most: u32) -> QueueCounts {
    let default = counts.default.min(most);
    let read = counts.read.min(most - default);
    QueueCounts {
        default,
        read,
        poll: counts.poll.min(most - default - read),
    }
}

/// Returns how many queues of each kind there are if a controller grants so many, at least one.
pub(crate) fn divide(wanted: QueueCounts, granted: u32) -> QueueCounts {
    // One queue is not polled.
    let poll = wanted.poll.min(granted - 1);
    let interrupting = granted - poll;
    let for_reads = u32::from(wanted.read > 0 && interrupting > 1);
    let default = wanted.default.min(interrupting - for_reads);
    QueueCounts {
        default,
        read: wanted.read.min(interrupting - default),
        poll,
    }
}
