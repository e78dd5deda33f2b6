// SPDX-License-Identifier: GPL-2.0

//! The settings of a device.
//!
//! Pure: imports nothing of the kernel, so the same file is compiled and tested on the host.
//!
//! A [`Config`] holds what a user asked for, field by field as the attributes show it. Most of
//! it is unchecked until power-on, when [`Config::plan`] decides what will really be built.

/// Bytes in the unit in which the block layer counts.
const SECTOR_SIZE: u32 = 512;

/// Bytes in a MiB, the unit of `size`.
const MIB: u64 = 1 << 20;

/// The most sectors a disk can have: their bytes are counted in a signed number.
const MAX_CAPACITY: u64 = i64::MAX as u64 / SECTOR_SIZE as u64;

/// The largest cache in MiB: its bytes are counted in an `unsigned long`.
const MAX_CACHE_SIZE: usize = usize::MAX >> 20;

/// The highest limit on bandwidth in MiB per second.
const MAX_MBPS: u32 = 40 << 10;

/// Values of `queue_mode`: only the last still exists, the others are history.
const QUEUE_BIO: u32 = 0;
const QUEUE_REQUEST: u32 = 1;
pub(crate) const QUEUE_MQ: u32 = 2;

/// Values of `irqmode`: end a request where it was served, in softirq context, or from a timer.
pub(crate) const IRQ_NONE: u32 = 0;
const IRQ_SOFTIRQ: u32 = 1;
pub(crate) const IRQ_TIMER: u32 = 2;

/// What the settings are measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemLimits {
    /// One more than the highest possible CPU number.
    pub(crate) cpus: u32,
    /// NUMA nodes that are online.
    pub(crate) nodes: u32,
    /// The most polled queues that a device may have.
    pub(crate) poll_queues: u32,
    /// Bytes in a page.
    pub(crate) page_size: u32,
    /// Bytes in the largest logical block that the block layer accepts.
    pub(crate) largest_block: u32,
    /// Bytes in the smallest logical block that a cache can keep.
    pub(crate) smallest_cached_block: u32,
}

/// What a user asked for; each field has the name, type and unit of its attribute.
///
/// `usize` stands for C's `unsigned long`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) badblocks_once: bool,
    pub(crate) badblocks_partial_io: bool,
    pub(crate) blocking: bool,
    pub(crate) blocksize: u32,
    pub(crate) cache_size: usize,
    pub(crate) completion_nsec: usize,
    pub(crate) discard: bool,
    pub(crate) fua: bool,
    pub(crate) home_node: u32,
    pub(crate) hw_queue_depth: u32,
    pub(crate) index: u32,
    pub(crate) irqmode: u32,
    pub(crate) max_sectors: u32,
    pub(crate) mbps: u32,
    pub(crate) memory_backed: bool,
    pub(crate) no_sched: bool,
    pub(crate) poll_queues: u32,
    pub(crate) queue_mode: u32,
    pub(crate) rotational: bool,
    pub(crate) shared_tag_bitmap: bool,
    pub(crate) shared_tags: bool,
    pub(crate) size: usize,
    pub(crate) submit_queues: u32,
    pub(crate) use_per_node_hctx: bool,
    pub(crate) virt_boundary: bool,
}

/// How the end of a request is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// None: the request ends where it was served.
    None,
    /// In softirq context, on the CPU that submitted.
    Softirq,
    /// From a timer, so many nanoseconds after the request was served.
    Timer(i64),
}

/// What will really be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValidatedConfig {
    /// The settings as the attributes show them once the disk is on.
    pub(crate) settings: Config,
    /// Bytes in a logical block.
    pub(crate) block_size: u32,
    /// Sectors on the disk.
    pub(crate) capacity: u64,
    /// How requests end.
    pub(crate) interrupt: Interrupt,
    /// Where memory should come from, if anywhere in particular.
    pub(crate) node: Option<u32>,
}

/// Why settings cannot be built; all of them are `-EINVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigError {
    /// `queue_mode` is the request interface of old.
    QueueMode,
    /// `blocksize` is no power of two, or out of range.
    BlockSize,
    /// `blocksize` is too small for the cache that `cache_size` asks for.
    CachedBlockSize,
    /// `max_sectors` is less than a page or a logical block.
    MaxSectors,
}

impl Config {
    /// Decides what these settings build, or why they cannot be built.
    pub(crate) fn plan(mut self, machine: &SystemLimits) -> Result<ValidatedConfig, ConfigError> {
        if self.wants_requests() {
            return Err(ConfigError::QueueMode);
        }
        // Values above the last never meant anything; they pass, as they do in null_blk.
        if self.wants_bios() {
            self.queue_mode = QUEUE_MQ;
        }
        // What keeps no data has nothing to cache, nor to discard.
        self.discard &= self.memory_backed;
        self.cache_size = match self.memory_backed {
            true => self.cache_size.min(MAX_CACHE_SIZE),
            false => 0,
        };
        let block_size = self.block_size(machine)?;
        if self.cache_size != 0 && block_size < machine.smallest_cached_block {
            return Err(ConfigError::CachedBlockSize);
        }
        self.check_max_sectors(block_size, machine)?;

        self.submit_queues = queues(self.submit_queues, self.use_per_node_hctx, machine);
        self.poll_queues = self.poll_queues.min(machine.poll_queues);
        self.irqmode = self.irqmode.min(IRQ_TIMER);
        self.mbps = self.mbps.min(MAX_MBPS);
        // A write may have to wait for a page.
        self.blocking |= self.memory_backed;

        Ok(ValidatedConfig {
            settings: self,
            block_size,
            capacity: self.capacity(),
            interrupt: self.interrupt(),
            node: self.node(machine),
        })
    }

    /// Whether the bio interface of old was asked for, which blk-mq replaces.
    pub(crate) fn wants_bios(&self) -> bool {
        self.queue_mode == QUEUE_BIO
    }

    /// Whether the request interface of old was asked for, which nothing replaces.
    pub(crate) fn wants_requests(&self) -> bool {
        self.queue_mode == QUEUE_REQUEST
    }

    /// Where memory should come from, if anywhere in particular.
    pub(crate) fn node(&self, machine: &SystemLimits) -> Option<u32> {
        Some(self.home_node).filter(|&node| node < machine.nodes)
    }

    fn block_size(&self, machine: &SystemLimits) -> Result<u32, ConfigError> {
        match self.blocksize {
            // The block layer's own default; the attribute keeps its zero.
            0 => Ok(SECTOR_SIZE),
            size if size.is_power_of_two()
                && (SECTOR_SIZE..=machine.largest_block).contains(&size) =>
            {
                Ok(size)
            }
            _ => Err(ConfigError::BlockSize),
        }
    }

    /// Refuses what the block layer would refuse too, but with a warning and a stack trace.
    fn check_max_sectors(
        &self,
        block_size: u32,
        machine: &SystemLimits,
    ) -> Result<(), ConfigError> {
        let least = machine.page_size.max(block_size) / SECTOR_SIZE;
        match self.max_sectors {
            // Zero asks for the block layer's default.
            0 => Ok(()),
            sectors if sectors >= least => Ok(()),
            _ => Err(ConfigError::MaxSectors),
        }
    }

    /// Wraps as null_blk's arithmetic does, where the number of bytes is kept to 64 bits.
    fn capacity(&self) -> u64 {
        let bytes = (self.size as u64).wrapping_mul(MIB);
        (bytes / u64::from(SECTOR_SIZE)).min(MAX_CAPACITY)
    }

    fn interrupt(&self) -> Interrupt {
        match self.irqmode {
            IRQ_NONE => Interrupt::None,
            IRQ_SOFTIRQ => Interrupt::Softirq,
            // Kernel time is signed: what does not fit lies in the past and is due at once.
            _ => Interrupt::Timer(self.completion_nsec as i64),
        }
    }
}

/// The number of submission queues for `wanted` of them.
pub(crate) fn queues(wanted: u32, per_node: bool, machine: &SystemLimits) -> u32 {
    if per_node {
        machine.nodes
    } else {
        wanted.clamp(1, machine.cpus)
    }
}

/// Whether a disk that is on may change to the queues that are `wanted`.
pub(crate) fn queues_allowed(wanted: &Config, machine: &SystemLimits) -> bool {
    (1..=machine.cpus).contains(&wanted.submit_queues) && wanted.poll_queues <= machine.poll_queues
}

/// The block size for the module parameter `bs`: at most a page, as is whatever is negative.
pub(crate) fn parameter_block_size(bs: i32, machine: &SystemLimits) -> i32 {
    (bs as u32).min(machine.page_size) as i32
}

/// The node for the module parameter `home_node`: -1 means any, as does what is not online.
pub(crate) fn parameter_node(node: i32, machine: &SystemLimits) -> i32 {
    if (node as u32) < machine.nodes {
        node
    } else {
        -1
    }
}

/// The count for the module parameter `submit_queues`: what is negative counts as very many.
pub(crate) fn parameter_queues(count: i32, per_node: bool, machine: &SystemLimits) -> i32 {
    queues(count as u32, per_node, machine) as i32
}
