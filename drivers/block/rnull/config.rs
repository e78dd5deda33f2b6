// SPDX-License-Identifier: GPL-2.0

//! The settings of a device.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.
//!
//! A [`Config`] holds what the user has written to the attributes. Most values are not checked
//! before power-on, when [`Config::validate`] turns them into a [`ValidatedConfig`].

use crate::zone_layout::{
    ZoneLayout,
    MAX_ZONE_SIZE, //
};

/// Bytes in a sector of the block layer.
const SECTOR_SIZE: u32 = 512;

/// Bytes in a MiB, the unit of `size`.
const MIB: u64 = 1 << 20;

/// The maximum capacity in sectors: the size in bytes has to fit into an `loff_t`.
const MAX_CAPACITY: u64 = i64::MAX as u64 / SECTOR_SIZE as u64;

/// The maximum cache size in MiB: the size in bytes has to fit into an `unsigned long`.
const MAX_CACHE_SIZE: usize = usize::MAX >> 20;

/// The maximum of `mbps`.
const MAX_MBPS: u32 = 40 << 10;

/// Values of `queue_mode`: the disk gets bios, or requests from hardware queues. The old request
/// interface is gone.
const QUEUE_BIO: u32 = 0;
const QUEUE_REQUEST: u32 = 1;
pub(crate) const QUEUE_MQ: u32 = 2;

/// Values of `irqmode`: complete requests in `queue_rq`, in softirq context, or from a timer.
pub(crate) const IRQ_NONE: u32 = 0;
const IRQ_SOFTIRQ: u32 = 1;
pub(crate) const IRQ_TIMER: u32 = 2;

/// The limits of the system that settings depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemLimits {
    /// The number of possible CPU ids: `nr_cpu_ids`.
    pub(crate) cpus: u32,
    /// The number of NUMA nodes that are online.
    pub(crate) nodes: u32,
    /// The maximum number of polled queues of a device.
    pub(crate) poll_queues: u32,
    /// The page size in bytes.
    pub(crate) page_size: u32,
    /// The maximum logical block size in bytes that the block layer accepts.
    pub(crate) max_block_size: u32,
    /// The minimum logical block size in bytes for a cache.
    pub(crate) min_cached_block_size: u32,
    /// The maximum number of zones of a disk. Zero if the block layer does not support zones.
    pub(crate) max_zones: u32,
}

/// Passes the table of all settings to the macro `$table`.
///
/// A line has the name of an attribute, then the type of its field in [`Config`]. `badblocks`,
/// `power`, `zone_offline` and `zone_readonly` have no field.
///
/// The rest of a line is the module parameter that sets the default: its name, type and default,
/// and the text for `modinfo`. A parameter of another type than the field is cast, or compared with
/// zero for a `bool`. A function for the conversion may follow.
///
/// The fields, the parameters, the attributes and `features` are all generated from this table. It
/// is sorted by the names of the attributes.
macro_rules! settings {
    ($table:ident) => {
        $table! {
            badblocks;
            badblocks_once: bool;
            badblocks_partial_io: bool;
            blocking: bool, blocking: bool = false, "Let queue_rq sleep. Default: N";
            blocksize: u32, bs: int = 512,
                "Logical block size in bytes, at most a page. Default: 512";
            cache_size: usize, cache_size: ulong = 0,
                "Size of the volatile write cache in MiB (needs memory_backed). Default: 0 (none)";
            completion_nsec: usize, completion_nsec: ulong = 10_000,
                "Delay of a completion in ns, for irqmode=2. Default: 10000";
            discard: bool, discard: bool = false,
                "Accept discards (needs memory_backed). Default: N";
            fua: bool, fua: bool = true, "Accept FUA writes (needs cache_size). Default: Y";
            home_node: u32, home_node: int = -1, "NUMA node to allocate from. Default: -1 (any)";
            hw_queue_depth: u32, hw_queue_depth: int = 64, "Tags of a hardware queue. Default: 64";
            index: u32;
            irqmode: u32, irqmode: int(check_irqmode) = 1,
                "Where requests complete: 0-queue_rq, 1-softirq, 2-timer. Default: 1";
            max_sectors: u32, max_sectors: int = 0,
                "Maximum size of a request in 512-byte sectors. Default: 0 (255)";
            mbps: u32, mbps: uint = 0, "Bandwidth limit in MiB/s. Default: 0 (none)";
            memory_backed: bool, memory_backed: bool = false, "Keep the data in memory. Default: N";
            no_sched: bool, no_sched: int = 0, "Start without an I/O scheduler. Default: 0";
            poll_queues: u32, poll_queues: int = 1,
                "Number of poll queues, and the maximum for any device. Default: 1";
            power;
            queue_mode: u32, queue_mode: int(check_queue_mode) = 2,
                "Interface to the block layer: 0-bio, 2-blk-mq. Default: 2";
            rotational: bool, rotational: bool = false, "Report a rotational device. Default: N";
            shared_tag_bitmap: bool, shared_tag_bitmap: bool = false,
                "Share the tags among the hardware queues of a device. Default: N";
            shared_tags: bool, shared_tags: bool = false,
                "Share one tag set among all such devices. Default: N";
            size: usize, gb: int = 250, "Capacity in GiB. Default: 250", mebibytes;
            submit_queues: u32, submit_queues: int = 1, "Number of submission queues. Default: 1";
            use_per_node_hctx: bool, use_per_node_hctx: bool = false,
                "Make one submission queue for each NUMA node. Default: N";
            virt_boundary: bool, virt_boundary: bool = false,
                "Let segments meet at page boundaries only. Default: N";
            zone_append_max_sectors: u32, zone_append_max_sectors: int = i32::MAX,
                "Maximum size of a zone append in 512-byte sectors, 0 to emulate it. Default: any";
            zone_capacity: usize, zone_capacity: ulong = 0,
                "Capacity of a sequential zone in MiB. Default: 0 (zone_size)";
            zone_full: bool, zone_full: bool = false,
                "Start with full sequential zones. Default: N";
            zone_max_active: u32, zone_max_active: uint = 0,
                "Maximum number of active zones. Default: 0 (no limit)";
            zone_max_open: u32, zone_max_open: uint = 0,
                "Maximum number of open zones. Default: 0 (no limit)";
            zone_nr_conv: u32, zone_nr_conv: uint = 0,
                "Number of conventional zones. Default: 0";
            zone_offline;
            zone_readonly;
            zone_size: usize, zone_size: ulong = 256,
                "Size of a zone in MiB, a power of two. Default: 256";
            zoned: bool, zoned: bool = false,
                "Make a host-managed zoned block device. Default: N";
        }
    };
}
pub(crate) use settings;

/// Defines [`Config`] by the table of settings.
macro_rules! config {
    ($($name:ident
        $(: $type:ty $(, $param:ident: $param_type:ident $(($check:ident))? = $default:expr,
            $text:literal $(, $convert:ident)?)?)?;)*
    ) => {
        /// The settings of a device. Each field has the name, type and unit of its attribute.
        ///
        /// `usize` stands for C's `unsigned long`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Config {
            $($(pub(crate) $name: $type,)?)*
        }
    };
}
settings!(config);

/// How requests are completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// In `queue_rq`.
    None,
    /// In softirq context, on the CPU that submitted the request or one that shares its cache.
    Softirq,
    /// From a timer, after this many nanoseconds.
    Timer(i64),
}

/// Settings that a disk can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValidatedConfig {
    /// The effective settings, which the attributes show while the disk is on.
    pub(crate) settings: Config,
    /// The logical block size in bytes.
    pub(crate) block_size: u32,
    /// The capacity in sectors.
    pub(crate) capacity: u64,
    /// How requests are completed.
    pub(crate) interrupt: Interrupt,
    /// The NUMA node to allocate from. [`None`] if it does not matter.
    pub(crate) node: Option<u32>,
    /// The zones of a zoned disk.
    pub(crate) zones: Option<ZoneLayout>,
}

/// Why settings are rejected. Nearly all of these are `-EINVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigError {
    /// `queue_mode` is the old request interface.
    QueueMode,
    /// `blocksize` is no power of two, or out of range.
    BlockSize,
    /// `blocksize` is too small for the cache that `cache_size` asks for.
    CachedBlockSize,
    /// `max_sectors` is less than a page or a logical block.
    MaxSectors,
    /// `zoned` is not supported by the block layer.
    Zoned,
    /// `zone_size` is no power of two, or larger than the disk.
    ZoneSize,
    /// `zone_size` is more than the block layer supports: `-ENODEV`.
    ZoneTooLarge,
    /// `zone_capacity` is larger than a zone, or another size while the last zone is shorter.
    ZoneCapacity,
    /// There would be too many zones: `-ENOMEM`.
    TooManyZones,
}

impl Config {
    /// Checks the settings, and computes their effective values.
    pub(crate) fn validate(
        mut self,
        limits: &SystemLimits,
    ) -> Result<ValidatedConfig, ConfigError> {
        if self.wants_requests() {
            return Err(ConfigError::QueueMode);
        }
        // Values above `QUEUE_MQ` are accepted, as by null_blk.
        if self.lacks_bios() {
            self.queue_mode = QUEUE_MQ;
        }
        // Without data there is nothing to cache or to discard. The data of a zone is discarded
        // with the zone.
        self.discard &= self.memory_backed && !self.zoned;
        self.cache_size = match self.memory_backed {
            true => self.cache_size.min(MAX_CACHE_SIZE),
            false => 0,
        };
        let block_size = self.block_size(limits)?;
        if self.cache_size != 0 && block_size < limits.min_cached_block_size {
            return Err(ConfigError::CachedBlockSize);
        }
        self.check_max_sectors(block_size, limits)?;
        let zones = match self.zoned {
            true => Some(self.validate_zones(block_size, limits)?),
            false => None,
        };

        self.irqmode = self.irqmode.min(IRQ_TIMER);
        if self.uses_bios() {
            self.mbps = 0;
        } else {
            self.submit_queues = queues(self.submit_queues, self.use_per_node_hctx, limits);
            self.poll_queues = self.poll_queues.min(limits.poll_queues);
            self.mbps = self.mbps.min(MAX_MBPS);
            // A write may sleep to allocate a page.
            self.blocking |= self.memory_backed;
        }

        Ok(ValidatedConfig {
            settings: self,
            block_size,
            capacity: self.capacity(),
            interrupt: self.interrupt(),
            node: self.node(limits),
            zones,
        })
    }

    /// Checks the settings of a zoned disk, and computes their effective values.
    fn validate_zones(
        &mut self,
        block_size: u32,
        limits: &SystemLimits,
    ) -> Result<ZoneLayout, ConfigError> {
        if limits.max_zones == 0 {
            return Err(ConfigError::Zoned);
        }
        let size = self.zone_size;
        if !size.is_power_of_two() || size > self.size {
            return Err(ConfigError::ZoneSize);
        }
        if self.zone_capacity == 0 {
            self.zone_capacity = size;
        }
        // A short last zone would have another capacity.
        let has_short_zone = self.size % size != 0;
        if self.zone_capacity > size || (self.zone_capacity < size && has_short_zone) {
            return Err(ConfigError::ZoneCapacity);
        }
        let size = sectors(size).ok_or(ConfigError::ZoneSize)?;
        if size > MAX_ZONE_SIZE {
            return Err(ConfigError::ZoneTooLarge);
        }
        let capacity = sectors(self.zone_capacity).ok_or(ConfigError::ZoneCapacity)?;
        let layout = ZoneLayout::new(self.capacity(), size, capacity, limits.max_zones)
            .ok_or(ConfigError::TooManyZones)?
            .with_conventional(self.zone_nr_conv);

        self.zone_nr_conv = layout.conventional();
        // An append writes whole blocks, to one zone. The capacity of a zone has 32 bits.
        let blocks = self.zone_append_max_sectors & !(block_size / SECTOR_SIZE - 1);
        self.zone_append_max_sectors = blocks.min(capacity as u32);
        // A limit that allows for all zones is none.
        if self.zone_max_active >= layout.sequential() {
            self.zone_max_active = 0;
        }
        // An open zone is also active.
        if self.zone_max_active != 0 {
            self.zone_max_open = self.zone_max_open.min(self.zone_max_active);
        } else if self.zone_max_open >= layout.sequential() {
            self.zone_max_open = 0;
        }
        Ok(layout)
    }

    /// Whether `queue_rq` of the disk can sleep. Disks that share tags are alike in this.
    pub(crate) fn may_sleep(&self) -> bool {
        self.blocking || self.shared_tags
    }

    /// Whether the disk gets bios. The settings of hardware queues then have no effect.
    pub(crate) fn uses_bios(&self) -> bool {
        self.queue_mode == QUEUE_BIO && !self.zoned
    }

    /// Whether `queue_mode` asks for bios, but the disk is zoned, so it gets requests.
    pub(crate) fn lacks_bios(&self) -> bool {
        self.queue_mode == QUEUE_BIO && self.zoned
    }

    /// Whether `queue_mode` is the old request interface, which is rejected.
    pub(crate) fn wants_requests(&self) -> bool {
        self.queue_mode == QUEUE_REQUEST
    }

    /// The NUMA node to allocate from. [`None`] if it does not matter.
    pub(crate) fn node(&self, limits: &SystemLimits) -> Option<u32> {
        Some(self.home_node).filter(|&node| node < limits.nodes)
    }

    fn block_size(&self, limits: &SystemLimits) -> Result<u32, ConfigError> {
        match self.blocksize {
            // The default of the block layer. The attribute still shows zero.
            0 => Ok(SECTOR_SIZE),
            size if size.is_power_of_two()
                && (SECTOR_SIZE..=limits.max_block_size).contains(&size) =>
            {
                Ok(size)
            }
            _ => Err(ConfigError::BlockSize),
        }
    }

    /// Rejects values for which the block layer would warn with a stack trace.
    fn check_max_sectors(&self, block_size: u32, limits: &SystemLimits) -> Result<(), ConfigError> {
        let least = limits.page_size.max(block_size) / SECTOR_SIZE;
        match self.max_sectors {
            // The default of the block layer.
            0 => Ok(()),
            sectors if sectors >= least => Ok(()),
            _ => Err(ConfigError::MaxSectors),
        }
    }

    /// The number of bytes wraps at 64 bits, as in null_blk.
    fn capacity(&self) -> u64 {
        let bytes = (self.size as u64).wrapping_mul(MIB);
        (bytes / u64::from(SECTOR_SIZE)).min(MAX_CAPACITY)
    }

    fn interrupt(&self) -> Interrupt {
        match self.irqmode {
            IRQ_NONE => Interrupt::None,
            IRQ_SOFTIRQ => Interrupt::Softirq,
            // `ktime_t` is signed: larger values are negative, and expire at once.
            _ => Interrupt::Timer(self.completion_nsec as i64),
        }
    }
}

/// The number of sectors in so many MiB; [`None`] if the number of bytes does not fit.
fn sectors(mebibytes: usize) -> Option<u64> {
    let bytes = (mebibytes as u64).checked_mul(MIB)?;
    Some(bytes / u64::from(SECTOR_SIZE))
}

/// The capacity in MiB for the module parameter `gb`. It wraps like C's `int`, and is
/// sign-extended.
pub(crate) fn mebibytes(gb: i32) -> usize {
    gb.wrapping_mul(1024) as usize
}

/// The effective number of submission queues.
pub(crate) fn queues(wanted: u32, per_node: bool, limits: &SystemLimits) -> u32 {
    if per_node {
        limits.nodes
    } else {
        wanted.clamp(1, limits.cpus)
    }
}

/// Whether the numbers of queues of a disk that is on may change to those of `wanted`.
pub(crate) fn queues_allowed(wanted: &Config, limits: &SystemLimits) -> bool {
    (1..=limits.cpus).contains(&wanted.submit_queues) && wanted.poll_queues <= limits.poll_queues
}

/// The effective value of the module parameter `bs`: at most a page, also if it is negative.
pub(crate) fn parameter_block_size(bs: i32, limits: &SystemLimits) -> i32 {
    (bs as u32).min(limits.page_size) as i32
}

/// The effective value of the module parameter `home_node`: -1 (any) if it is negative, or not less
/// than the number of nodes that are online.
pub(crate) fn parameter_node(node: i32, limits: &SystemLimits) -> i32 {
    if (node as u32) < limits.nodes {
        node
    } else {
        -1
    }
}

/// The effective value of the module parameter `submit_queues`: the maximum if it is negative.
pub(crate) fn parameter_queues(count: i32, per_node: bool, limits: &SystemLimits) -> i32 {
    queues(count as u32, per_node, limits) as i32
}
