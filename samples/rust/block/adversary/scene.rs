// SPDX-License-Identifier: GPL-2.0

//! One step: disks of a driver that misbehaves, with what is done to them meanwhile.

use super::{
    chance::Chance,
    data::{
        Disk,
        Set, //
    },
    deeds,
    drivers::{
        Bare,
        Full,
        Polled,
        Sleepy, //
    },
    extremes,
    leak::Leak,
    place::Place,
    requests::{
        self,
        Adversary, //
    },
    sweeper::Sweeper,
    world::{
        Handle,
        World, //
    },
};
use core::mem::forget;
use kernel::{
    block::{
        badblocks::BadBlocks,
        gendisk::{
            GenDisk,
            GenDiskBuilder,
            NewDisk, //
        },
        limits::QueueLimits,
        major::BlockMajor,
        mq::{
            IoCompletionBatch,
            TagSet, //
        },
        Sectors, //
    },
    fault::Fault,
    new_mutex,
    page_store::{
        PageStore,
        WriteCache, //
    },
    prelude::*,
    static_lock_class,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        hrtimer::ArcHrTimerHandle,
        Delta, //
    },
};

/// How long the end of a scene may take, in milliseconds, before it counts as a hang.
const PATIENCE: u64 = 20_000;

/// What is added to the number of an act for which memory may be short.
const SCARCE: u64 = 1 << 32;

/// How many disks are built, each with other limits, before one is added.
const TRIALS: u32 = 3;

/// The most disks of a scene.
const DISKS: usize = 4;

/// What can be done with a scene of any driver.
pub(crate) trait Scene: Send + Sync {
    /// Does the thing with this number.
    fn act(&self, number: u64) -> Result;

    /// Does in a task what callbacks do otherwise.
    fn work(&self);

    /// Does at `place` what should not be done there.
    fn occasion(&self, place: Place);

    /// Leaks something, or has callbacks do it.
    fn leak(&self, leak: Leak) -> Result;

    /// Whether something is still to be leaked.
    fn leaks(&self) -> bool;

    /// Ends the scene; `ETIMEDOUT` if something of it is not gone in time.
    fn end(&self) -> Result;
}

/// Begins step `step` of `seed`, without some kinds of deeds.
pub(crate) fn begin(seed: u64, step: u64, without: u32) -> Result<Arc<dyn Scene>> {
    let mut chance = Chance::new(seed).fork(step);
    match chance.below(8) {
        0 => Stage::<Bare>::begin(seed, step, without, chance),
        1 => Stage::<Polled>::begin(seed, step, without, chance),
        2..=4 => Stage::<Full>::begin(seed, step, without, chance),
        _ => Stage::<Sleepy>::begin(seed, step, without, chance),
    }
}

/// What a task has of the scene.
struct Kept<T: Adversary> {
    disks: KVec<GenDisk<T>>,
    /// Numbers disks.
    next: u32,
    ended: bool,
    sweeper: Option<ArcHrTimerHandle<Sweeper<T>>>,
}

/// A scene of driver `T`.
#[pin_data]
struct Stage<T: Adversary> {
    step: u64,
    chance: Chance,
    /// Whether no disk shares the tag set of another.
    alone: bool,
    world: Arc<World<T>>,
    #[pin]
    kept: Mutex<Kept<T>>,
}

impl<T: Adversary> Stage<T> {
    fn begin(seed: u64, step: u64, without: u32, mut chance: Chance) -> Result<Arc<dyn Scene>> {
        let place = Place::any(&mut chance);
        pr_info!("seed {seed} step {step}: {}, drops in {place:?}\n", T::NAME);
        let timeout = Delta::from_millis(chance.below(300) as i64);
        let mut options = extremes::tag_set_options(&mut chance, Some(timeout));
        // When the number of queues changes, C adds the schedulers of one disk to sysfs while other
        // disks on the tag set are frozen. Reclaim that holds a lock of sysfs may wait for those,
        // of which lockdep complains (patches/upstream/blk-mq-elevator-sysfs.patch). So either a
        // tag set has one disk, or its disks have no schedulers.
        let alone = step % 2 == 1;
        options.no_sched |= !alone;
        let times_out = options.timeout.is_some_and(|asked| asked == timeout);
        let world = World::new(chance.fork(0), place, without, times_out)?;
        let sweeper = Sweeper::start(&world)?;
        let shared = world.clone();
        let stage = Arc::pin_init(
            pin_init!(Self {
                step,
                chance: chance.fork(1),
                alone,
                world: shared,
                kept <- new_mutex!(Kept {
                    disks: KVec::new(),
                    next: 0,
                    ended: false,
                    sweeper: Some(sweeper),
                }),
            }),
            GFP_KERNEL,
        )?;
        world.replace_line(T::line(extremes::delay(&mut chance)).ok());
        world.replace_tags(TagSet::new(options, Ok(Set::new(&world))).ok());
        for _ in 0..TRIALS {
            if let Some(tags) = world.tags() {
                drop(stage.build(tags, &mut chance, true));
            }
        }
        let disks = 1 + chance.below(2);
        for _ in 0..if alone { 1 } else { disks } {
            // With the limits that were chosen, else with plain ones.
            if stage.add(&mut chance, true).is_err() {
                let _ = stage.add(&mut chance, false);
            }
        }
        let scene: Arc<dyn Scene> = stage;
        Ok(scene)
    }

    /// Builds a disk on `tags`.
    fn build(
        &self,
        tags: Arc<TagSet<T>>,
        chance: &mut Chance,
        any_limits: bool,
    ) -> Result<NewDisk<T>> {
        let number = {
            let mut kept = self.kept.lock();
            kept.next += 1;
            kept.next
        };
        let name = extremes::disk_name(chance, any_limits, self.step, number)?;
        let builder = GenDiskBuilder::new(tags, static_lock_class!());
        let builder = if any_limits {
            builder
                .limits(extremes::queue_limits(chance))
                .capacity(extremes::capacity(chance))
        } else {
            builder
                .limits(QueueLimits {
                    max_hw_discard_sectors: Sectors(1024),
                    write_cache: true,
                    ..QueueLimits::default()
                })
                .capacity(Sectors::from_mebibytes(16))
        };
        let data = if any_limits && chance.one_in(8) {
            Err(EIO)
        } else {
            Ok(Disk::new(&self.world))
        };
        builder.build(&name, data)
    }

    /// Adds a disk to those of the scene.
    fn add(&self, chance: &mut Chance, any_limits: bool) -> Result {
        let tags = self.world.tags().ok_or(ENODEV)?;
        let disk = self.build(tags, chance, any_limits)?.add()?;
        let mut kept = self.kept.lock();
        if kept.ended || kept.disks.len() >= DISKS {
            drop(kept);
            drop(disk);
            return Err(EBUSY);
        }
        Ok(kept.disks.push(disk, GFP_KERNEL)?)
    }

    /// Adds a disk that may have to share the tag set.
    fn more(&self, chance: &mut Chance, any_limits: bool) -> Result {
        if self.alone {
            return Err(EBUSY);
        }
        self.add(chance, any_limits)
    }

    /// Takes one of the disks.
    fn take(&self, chance: &mut Chance) -> Option<GenDisk<T>> {
        let mut kept = self.kept.lock();
        let index = chance.below(kept.disks.len() as u64) as usize;
        kept.disks.remove(index).ok()
    }

    /// Has something dropped where the scene drops things.
    fn condemn(&self, thing: impl Send + 'static) -> Result {
        let handle: Handle = KBox::new(thing, GFP_KERNEL)?;
        // If there are too many, this task drops it.
        drop(self.world.condemn(handle));
        Ok(())
    }

    fn condemn_disk(&self, chance: &mut Chance) -> Result {
        match self.take(chance) {
            Some(disk) => self.condemn(disk),
            None => self.more(chance, false),
        }
    }

    /// Another tag set, perhaps one that cannot be.
    fn spare_tags(&self, chance: &mut Chance) -> Result<Arc<TagSet<T>>> {
        let timeout = Delta::from_millis(100);
        let options = extremes::tag_set_options(chance, Some(timeout));
        let data = if chance.one_in(6) {
            Err(EIO)
        } else {
            Ok(Set::new(&self.world))
        };
        TagSet::new(options, data)
    }

    /// A disk that was not added, on a tag set of its own.
    fn spare_disk(&self, chance: &mut Chance) -> Result<NewDisk<T>> {
        let tags = self.spare_tags(chance)?;
        self.build(tags, chance, true)
    }

    /// A store with a few pages, and a cache in front of it.
    fn condemn_stores(&self, chance: &mut Chance) -> Result {
        let store = Arc::pin_init(PageStore::new(extremes::edge(chance) as u32), GFP_KERNEL)?;
        for _ in 0..chance.below(8) {
            let _ = store.write_bytes(chance.below(1 << 26), b"something");
        }
        let edge = extremes::edge(chance) as u32;
        let block = chance.pick(&[512, 512, 4096, edge]);
        let cache = WriteCache::new(store.clone(), extremes::edge(chance), block);
        if let Ok(cache) = KBox::pin_init(cache, GFP_KERNEL) {
            self.condemn(cache)?;
        }
        self.condemn(store)
    }

    fn condemn_numbers(&self, chance: &mut Chance) -> Result {
        let major = BlockMajor::register(c"adversary")?;
        let tags = self.world.tags().ok_or(ENODEV)?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .numbers(
                major.clone(),
                extremes::edge(chance) as u32,
                extremes::edge(chance) as u32,
            )
            .build(c"adv_numbers", Ok(Disk::new(&self.world)));
        if let Ok(disk) = disk {
            match chance.below(2) {
                0 => self.condemn(disk.add()?)?,
                _ => self.condemn(disk)?,
            }
        }
        self.condemn(major)
    }

    fn condemn_fault(&self, chance: &mut Chance) -> Result {
        let fault = Fault::new(c"condemned", &extremes::fault_settings(chance))?;
        let _ = fault.should_fail();
        self.condemn(fault)
    }

    fn condemn_line(&self, chance: &mut Chance) -> Result {
        let line = T::line(extremes::delay(chance))?;
        match self.world.replace_line(Some(line)) {
            Some(line) => self.condemn(line),
            None => Ok(()),
        }
    }

    fn change_queues(&self, chance: &mut Chance) -> Result {
        if chance.one_in(3) {
            self.world.fail_queue(chance.below(6) as i64);
        }
        let tags = self.world.tags().ok_or(ENODEV)?;
        let changed = tags.set_queue_counts(extremes::queue_counts(chance));
        self.world.fail_queue(-1);
        changed
    }
}

impl<T: Adversary> Scene for Stage<T> {
    fn act(&self, number: u64) -> Result {
        let mut chance = self.chance.fork(number);
        let scarce = number >= SCARCE;
        self.world.set_scarce(scarce);
        if self.kept.lock().ended {
            return Err(EBUSY);
        }
        match chance.below(20) {
            // If C fails to make a queue twice, it follows a null pointer
            // (patches/upstream/blk-mq-queue-memory.patch); if it fails to register a scheduler, it
            // warns.
            0..=3 if scarce => Err(EBUSY),
            // It also warns if memory runs out in the middle of making a tag set
            // (patches/upstream/blk-mq-tag-set-srcu.patch).
            10..=12 if scarce => Err(EBUSY),
            0..=3 => self.change_queues(&mut chance),
            4 | 5 => {
                drop(self.take(&mut chance));
                Ok(())
            }
            6..=8 => self.condemn_disk(&mut chance),
            9 => self.more(&mut chance, true),
            10 => {
                let tags = self.spare_tags(&mut chance)?;
                self.condemn(tags)
            }
            11 => {
                let disk = self.spare_disk(&mut chance)?;
                if chance.one_in(2) {
                    return self.condemn(disk);
                }
                drop(self.world.replace_spare(Some(disk)));
                Ok(())
            }
            12 => {
                let disk = self.spare_disk(&mut chance)?.add()?;
                self.condemn(disk)
            }
            13 => self.condemn_stores(&mut chance),
            14 => self.condemn(BadBlocks::new()?),
            15 => self.condemn_fault(&mut chance),
            16 => self.condemn_line(&mut chance),
            17 => {
                self.world.doom_stash();
                Ok(())
            }
            18 if !self.alone => self.condemn_numbers(&mut chance),
            _ => {
                self.work();
                Ok(())
            }
        }
    }

    fn work(&self) {
        deeds::under_spin_lock(&self.world);
        requests::sweep(&self.world, &mut IoCompletionBatch::new(), Place::Task);
    }

    fn occasion(&self, place: Place) {
        deeds::occasion(&self.world, place);
    }

    fn leak(&self, leak: Leak) -> Result {
        let mut chance = self.chance.fork(leak as u64);
        match leak {
            Leak::GenDisk => forget(self.take(&mut chance).ok_or(ENODEV)?),
            Leak::NewDisk => {
                let tags = self.world.tags().ok_or(ENODEV)?;
                forget(self.build(tags, &mut chance, false)?);
            }
            Leak::TagSet => forget(self.world.tags().ok_or(ENODEV)?),
            Leak::DelayQueue => forget(T::line(Delta::from_millis(1))?),
            Leak::PageStore => {
                let store = Arc::pin_init(PageStore::new(4096), GFP_KERNEL)?;
                store.write_bytes(0, b"leaked")?;
                forget(store);
            }
            Leak::WriteCache => {
                let cache = WriteCache::new(self.world.store.clone(), 1 << 20, 4096);
                forget(KBox::pin_init(cache, GFP_KERNEL)?);
            }
            _ => self.world.leak_next(leak),
        }
        Ok(())
    }

    fn leaks(&self) -> bool {
        self.world.leaks_something()
    }

    fn end(&self) -> Result {
        let disks = {
            let mut kept = self.kept.lock();
            kept.ended = true;
            core::mem::replace(&mut kept.disks, KVec::new())
        };
        drop(disks);
        drop(self.world.replace_line(None));
        drop(self.world.replace_spare(None));
        drop(self.world.replace_tags(None));
        for _ in 0..PATIENCE {
            while let Some(handle) = self.world.any_condemned() {
                drop(handle);
            }
            if self.world.alive() == 0 {
                // Outside of the lock: it waits for the timer.
                let sweeper = self.kept.lock().sweeper.take();
                drop(sweeper);
                drop(self.world.take_stash());
                drop(self.world.take_hoard());
                drop(self.world.any_doomed());
                return Ok(());
            }
            fsleep(Delta::from_millis(1));
        }
        let alive = self.world.alive();
        pr_err!("step {}: {alive} things are not gone\n", self.step);
        Err(ETIMEDOUT)
    }
}
