// SPDX-License-Identifier: GPL-2.0

//! A disk that is on.

use crate::{
    backing::Backing,
    completion::Completion,
    conditions::Conditions,
    config::{
        Config,
        ValidatedConfig, //
    },
    queue::{
        Null,
        Queue, //
    },
    registry::Slot,
    tags, //
};
use kernel::{
    block::{
        gendisk::{
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
        Sectors, //
    },
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::Arc, //
};

/// A disk that is on; dropping it takes it off the system.
pub(crate) struct Disk {
    disk: Kind,
    /// Whether some of its queues were polled from the start; else none ever is.
    polls: bool,
    /// Comes after the disk: its number is free only when the disk is gone.
    slot: Slot,
}

/// Whether the requests of a disk may sleep.
enum Kind {
    NonBlocking(GenDisk<Null<NonBlocking>>),
    Blocking(GenDisk<Null<Blocking>>),
}

impl Disk {
    /// Builds what `plan` says on `backing`, under `conditions`, with number and name of `slot`.
    pub(crate) fn add(
        plan: &ValidatedConfig,
        backing: Backing,
        conditions: Conditions,
        slot: Slot,
    ) -> Result<Self> {
        let queue = Queue {
            backing,
            conditions,
            completion: Completion::new(plan.interrupt),
        };
        let disk = if plan.settings.shared_tags {
            let tags = slot.shared_tags().get()?;
            Kind::Blocking(add(tags, plan, queue, &slot)?)
        } else if plan.settings.blocking {
            Kind::Blocking(add(tags::own(plan)?, plan, queue, &slot)?)
        } else {
            Kind::NonBlocking(add(tags::own(plan)?, plan, queue, &slot)?)
        };
        Ok(Self {
            disk,
            polls: plan.settings.poll_queues > 0,
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

    /// Lets requests meet with what has come since power-on.
    pub(crate) fn enable_slow_path(&self) {
        self.queue().conditions.enable_slow_path();
    }

    fn queue(&self) -> &Queue {
        match &self.disk {
            Kind::NonBlocking(disk) => disk.queue_data(),
            Kind::Blocking(disk) => disk.queue_data(),
        }
    }

    /// Changes the numbers of queues under running I/O, or leaves them as they were.
    pub(crate) fn set_queues(&self, settings: &Config) -> Result {
        let mut counts = tags::counts(settings);
        if !self.polls {
            counts.poll = 0;
        }
        match &self.disk {
            Kind::NonBlocking(disk) => disk.tag_set().set_queue_counts(counts),
            Kind::Blocking(disk) => disk.tag_set().set_queue_counts(counts),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Requests would keep the disk until the last of them has had its turn.
        self.queue().conditions.disable();
    }
}

fn add<C: Context>(
    tags: Arc<TagSet<Null<C>>>,
    plan: &ValidatedConfig,
    queue: Queue,
    slot: &Slot,
) -> Result<GenDisk<Null<C>>> {
    GenDiskBuilder::new(tags, static_lock_class!())
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
        // Copies start and stop at any byte.
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
        ..QueueLimits::default()
    }
}
