// SPDX-License-Identifier: GPL-2.0

//! A disk that is on.

use crate::{
    backing::Backing,
    bios::{
        BioQueue,
        NullBios, //
    },
    completion::Completion,
    config::{
        Config,
        ValidatedConfig, //
    },
    queue::{
        Null,
        Queue, //
    },
    registry::Slot,
    slow_path::SlowPath,
    tags,
    zoned::{
        Condition,
        Zones, //
    }, //
};
use kernel::{
    block::{
        gendisk::{
            Bios,
            Driver,
            GenDisk,
            GenDiskBuilder, //
        },
        limits::QueueLimits,
        mq::{
            Blocking,
            Context,
            NonBlocking,
            TagSet, //
        },
        Sector,
        Sectors, //
    },
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::Arc, //
};

/// A disk that is on. Dropping it removes the disk.
pub(crate) struct Disk {
    disk: Kind,
    /// Whether the disk had polled queues when it was made. Otherwise it never gets any.
    has_poll_queues: bool,
    /// Dropped after the disk: the number is free only when the disk is gone. Without
    /// `CONFIG_PREEMPT_COUNT` a worker has yet to remove it, and adding a disk of the same number
    /// fails until then.
    slot: Slot,
}

/// The disk, by whether it gets bios, and otherwise by whether its `queue_rq` may sleep.
enum Kind {
    Bios(GenDisk<NullBios, Bios>),
    NonBlocking(GenDisk<Null<NonBlocking>>),
    Blocking(GenDisk<Null<Blocking>>),
}

impl Disk {
    /// Adds the disk that `plan` describes, with the number and name of `slot`.
    pub(crate) fn add(
        plan: &ValidatedConfig,
        backing: Option<Backing>,
        slow_path: SlowPath,
        slot: Slot,
    ) -> Result<Self> {
        if plan.settings.uses_bios() {
            return Self::add_for_bios(plan, backing, slow_path, slot);
        }
        let queue = Queue {
            backing,
            slow_path,
            zones: plan
                .zones
                .map(|layout| Zones::new(plan, layout))
                .transpose()?,
            completion: Completion::new(plan.interrupt),
        };
        let disk = if plan.settings.shared_tags {
            let tags = slot.shared_tags().get()?;
            Kind::Blocking(add(tags, plan, queue, &slot)?)
        } else if plan.settings.may_sleep() {
            Kind::Blocking(add(tags::own(plan)?, plan, queue, &slot)?)
        } else {
            Kind::NonBlocking(add(tags::own(plan)?, plan, queue, &slot)?)
        };
        Ok(Self {
            disk,
            has_poll_queues: plan.settings.poll_queues > 0,
            slot,
        })
    }

    /// Adds a disk that gets bios.
    fn add_for_bios(
        plan: &ValidatedConfig,
        backing: Option<Backing>,
        slow_path: SlowPath,
        slot: Slot,
    ) -> Result<Self> {
        let queue = BioQueue::new(backing, slow_path, plan.interrupt)?;
        let builder = GenDiskBuilder::bio_based(static_lock_class!());
        Ok(Self {
            disk: Kind::Bios(build(builder, plan, queue, &slot)?),
            has_poll_queues: false,
            slot,
        })
    }

    /// The disk's number.
    pub(crate) fn index(&self) -> u32 {
        self.slot.index()
    }

    /// The disk's name.
    pub(crate) fn name(&self) -> &CStr {
        self.slot.name()
    }

    /// Makes requests check bad blocks that were added since power-on.
    pub(crate) fn enable_slow_path(&self) {
        self.slow_path().enable();
    }

    /// Makes the zone with `sector` read-only or offline, or empty if it is just that already.
    pub(crate) fn toggle_zone(&self, sector: Sector, failed: Condition) -> Result {
        let queue = self.queue().ok_or(EINVAL)?;
        let zones = queue.zones.as_ref().ok_or(EINVAL)?;
        zones.toggle(&queue.backing, sector, failed)
    }

    /// The driver's data of a disk that gets requests.
    fn queue(&self) -> Option<&Queue> {
        match &self.disk {
            Kind::Bios(_) => None,
            Kind::NonBlocking(disk) => Some(disk.queue_data()),
            Kind::Blocking(disk) => Some(disk.queue_data()),
        }
    }

    fn slow_path(&self) -> &SlowPath {
        match &self.disk {
            Kind::Bios(disk) => &disk.queue_data().slow_path,
            Kind::NonBlocking(disk) => &disk.queue_data().slow_path,
            Kind::Blocking(disk) => &disk.queue_data().slow_path,
        }
    }

    /// Whether the disk has hardware queues.
    pub(crate) fn has_queues(&self) -> bool {
        !matches!(self.disk, Kind::Bios(_))
    }

    /// Changes the number of hardware queues while I/O goes on. After an error it is unchanged. A
    /// disk that gets bios has none.
    pub(crate) fn set_queues(&self, settings: &Config) -> Result {
        let mut counts = tags::counts(settings);
        if !self.has_poll_queues {
            counts.poll = 0;
        }
        match &self.disk {
            Kind::Bios(_) => Ok(()),
            Kind::NonBlocking(disk) => disk.tag_set().set_queue_counts(counts),
            Kind::Blocking(disk) => disk.tag_set().set_queue_counts(counts),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The removal dispatches requests that wait. Without this, they would be throttled again.
        self.slow_path().disable_throttle();
    }
}

fn add<C: Context>(
    tags: Arc<TagSet<Null<C>>>,
    plan: &ValidatedConfig,
    queue: Queue,
    slot: &Slot,
) -> Result<GenDisk<Null<C>>> {
    build(
        GenDiskBuilder::new(tags, static_lock_class!()),
        plan,
        queue,
        slot,
    )
}

fn build<I: 'static, T: Driver<I>>(
    builder: GenDiskBuilder<T, I>,
    plan: &ValidatedConfig,
    queue: T::QueueData,
    slot: &Slot,
) -> Result<GenDisk<T, I>> {
    builder
        .limits(limits(plan))
        .capacity(Sectors(plan.capacity))
        .numbers(slot.major().clone(), slot.index(), 1)
        .build(slot.name(), Ok::<_, Error>(queue))?
        .add()
}

fn limits(plan: &ValidatedConfig) -> QueueLimits {
    let settings = &plan.settings;
    QueueLimits {
        logical_block_size: plan.block_size,
        physical_block_size: plan.block_size,
        max_hw_sectors: Sectors(settings.max_sectors.into()),
        virt_boundary_mask: if settings.virt_boundary {
            PAGE_SIZE - 1
        } else {
            0
        },
        // The least alignment, as in null_blk: C takes zero for that of a sector.
        dma_alignment: 1,
        max_hw_discard_sectors: if settings.discard {
            Sectors::from_bytes(u32::MAX.into())
        } else {
            Sectors::ZERO
        },
        discard_granularity: plan.block_size,
        write_cache: settings.cache_size > 0,
        fua: settings.fua,
        rotational: settings.rotational,
        ..zone_limits(plan)
    }
}

/// Returns the limits on zones, if the disk is zoned.
fn zone_limits(plan: &ValidatedConfig) -> QueueLimits {
    let (settings, Some(layout)) = (&plan.settings, plan.zones) else {
        return QueueLimits::default();
    };
    QueueLimits {
        zoned: true,
        chunk_sectors: Sectors(layout.size()),
        max_open_zones: settings.zone_max_open,
        max_active_zones: settings.zone_max_active,
        max_hw_zone_append_sectors: Sectors(settings.zone_append_max_sectors.into()),
        ..QueueLimits::default()
    }
}
