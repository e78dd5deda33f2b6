// SPDX-License-Identifier: GPL-2.0

//! A scenario: the disks of a misbehaving driver under operations.

use super::{
    bio_scenario::BioScenario,
    call_site::CallSite,
    data::{
        DiskData,
        SetData, //
    },
    drivers::{
        Bare,
        Full,
        Polled,
        Sleepy, //
    },
    extremes,
    leak::Leak,
    memory::Memory,
    misuse,
    requests::{
        self,
        Adversary, //
    },
    rng::Rng,
    shared::{
        Handle,
        Shared, //
    },
    sweeper::Sweeper,
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

/// The time limit for the end of a scenario, in milliseconds.
pub(crate) const END_TIMEOUT_MS: u64 = 20_000;

/// Is added to the number of an act in which allocations may fail.
const ALLOC_MAY_FAIL: u64 = 1 << 32;

/// The number of disks that are built with random limits before one is added.
const TRIAL_BUILDS: u32 = 3;

/// The maximum number of disks of a scenario.
pub(crate) const DISKS: usize = 4;

/// A scenario of any driver.
pub(crate) trait Scenario: Send + Sync {
    /// Does the operation with this number.
    fn act(&self, number: u64) -> Result;

    /// Ends requests in the calling task.
    fn work(&self);

    /// Misuses something at `site`.
    fn misuse_at(&self, site: CallSite);

    /// Leaks an object, at once or in a later callback.
    fn leak(&self, leak: Leak) -> Result;

    /// Whether the object has not been leaked yet.
    fn leaks(&self) -> bool;

    /// Ends the scenario.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` if an object of it was not dropped in time.
    fn end(&self) -> Result;
}

/// Begins step `step` of `seed`. `disabled` are the kinds of misuse to leave out.
pub(crate) fn begin(seed: u64, step: u64, disabled: u32) -> Result<Arc<dyn Scenario>> {
    let mut rng = Rng::new(seed).fork(step);
    match rng.below(10) {
        0 => DriverScenario::<Bare>::begin(seed, step, disabled, rng),
        1 => DriverScenario::<Polled>::begin(seed, step, disabled, rng),
        2 | 3 => BioScenario::begin(seed, step, disabled, rng),
        4..=6 => DriverScenario::<Full>::begin(seed, step, disabled, rng),
        _ => DriverScenario::<Sleepy>::begin(seed, step, disabled, rng),
    }
}

/// What only tasks access.
struct Owned<T: Adversary> {
    disks: KVec<GenDisk<T>>,
    /// The number of the last disk.
    next: u32,
    ended: bool,
    sweeper: Option<ArcHrTimerHandle<Sweeper<Shared<T>>>>,
}

/// A scenario of driver `T`.
#[pin_data]
struct DriverScenario<T: Adversary> {
    step: u64,
    rng: Rng,
    /// Whether each tag set has only one disk.
    exclusive: bool,
    shared: Arc<Shared<T>>,
    #[pin]
    owned: Mutex<Owned<T>>,
}

impl<T: Adversary> DriverScenario<T> {
    fn begin(seed: u64, step: u64, disabled: u32, mut rng: Rng) -> Result<Arc<dyn Scenario>> {
        let site = CallSite::any(&mut rng);
        pr_info!("seed {seed} step {step}: {}, drops in {site:?}\n", T::NAME);
        let timeout = Delta::from_millis(rng.below(300) as i64);
        let mut options = extremes::tag_set_options(&mut rng, Some(timeout));
        // When the number of queues changes, C adds the schedulers of one disk to sysfs while the
        // other disks of the tag set are frozen. Reclaim under a lock of sysfs may wait for these,
        // of which lockdep warns ("blk-mq: add schedulers to sysfs when all queues are thawed"). So
        // either a tag set has one disk, or its disks have no schedulers.
        let exclusive = step % 2 == 1;
        options.no_sched |= !exclusive;
        let times_out = options.timeout.is_some_and(|asked| asked == timeout);
        let shared = Shared::new(rng.fork(0), site, disabled, times_out)?;
        let sweeper = Sweeper::start(&shared)?;
        let for_driver = shared.clone();
        let driver = Arc::pin_init(
            pin_init!(Self {
                step,
                rng: rng.fork(1),
                exclusive,
                shared: for_driver,
                owned <- new_mutex!(Owned {
                    disks: KVec::new(),
                    next: 0,
                    ended: false,
                    sweeper: Some(sweeper),
                }),
            }),
            GFP_KERNEL,
        )?;
        shared.replace_delay_queue(T::delay_queue(extremes::delay(&mut rng)).ok());
        shared.replace_tags(TagSet::new(options, Ok(SetData::new(&shared))).ok());
        for _ in 0..TRIAL_BUILDS {
            if let Some(tags) = shared.tags() {
                drop(driver.build(tags, &mut rng, true));
            }
        }
        let disks = 1 + rng.below(2);
        for _ in 0..if exclusive { 1 } else { disks } {
            // If the random limits are invalid, the disk has plain ones. Its zones may still be
            // reported wrongly.
            let added = driver.add(&mut rng, true);
            let _ = added
                .or_else(|_| driver.add(&mut rng, false))
                .or_else(|_| driver.add(&mut rng, false));
        }
        let scenario: Arc<dyn Scenario> = driver;
        Ok(scenario)
    }

    /// Returns limits that are valid, of a zoned disk in some cases.
    fn plain_limits(&self, rng: &mut Rng) -> QueueLimits {
        let plain = QueueLimits {
            max_hw_discard_sectors: Sectors(1024),
            write_cache: true,
            ..QueueLimits::default()
        };
        if T::HAS_REPORT_ZONES && rng.one_in(2) {
            extremes::zoned(rng, plain)
        } else {
            plain
        }
    }

    /// Builds a disk with `tags`.
    fn build(&self, tags: Arc<TagSet<T>>, rng: &mut Rng, any_limits: bool) -> Result<NewDisk<T>> {
        let number = {
            let mut owned = self.owned.lock();
            owned.next += 1;
            owned.next
        };
        let name = extremes::disk_name(rng, any_limits, self.step, number)?;
        let builder = GenDiskBuilder::new(tags, static_lock_class!());
        let builder = if any_limits {
            let limits = extremes::queue_limits(rng);
            let capacity = extremes::capacity(rng, &limits);
            builder.limits(limits).capacity(capacity)
        } else {
            builder
                .limits(self.plain_limits(rng))
                .capacity(Sectors::from_mebibytes(16))
        };
        let data = if any_limits && rng.one_in(8) {
            Err(EIO)
        } else {
            Ok(DiskData::new(&self.shared))
        };
        builder.build(&name, data)
    }

    /// Adds a disk to the scenario.
    fn add(&self, rng: &mut Rng, any_limits: bool) -> Result {
        let tags = self.shared.tags().ok_or(ENODEV)?;
        let disk = self.build(tags, rng, any_limits)?.add()?;
        let mut owned = self.owned.lock();
        if owned.ended || owned.disks.len() >= DISKS {
            drop(owned);
            drop(disk);
            return Err(EBUSY);
        }
        Ok(owned.disks.push(disk, GFP_KERNEL)?)
    }

    /// Adds a disk that may share the tag set.
    fn add_another(&self, rng: &mut Rng, any_limits: bool) -> Result {
        if self.exclusive {
            return Err(EBUSY);
        }
        self.add(rng, any_limits)
    }

    /// Removes one of the disks from the scenario.
    fn take(&self, rng: &mut Rng) -> Option<GenDisk<T>> {
        let mut owned = self.owned.lock();
        let index = rng.below(owned.disks.len() as u64) as usize;
        owned.disks.remove(index).ok()
    }

    /// Has an object dropped at the call site of the scenario.
    fn drop_at_site(&self, thing: impl Send + 'static) -> Result {
        let handle: Handle = KBox::new(thing, GFP_KERNEL)?;
        // If there are too many, this task drops the object.
        drop(self.shared.drop_at_site(handle));
        Ok(())
    }

    fn drop_disk_at_site(&self, rng: &mut Rng) -> Result {
        match self.take(rng) {
            Some(disk) => self.drop_at_site(disk),
            None => self.add_another(rng, false),
        }
    }

    /// Makes another tag set, perhaps with invalid options.
    fn spare_tags(&self, rng: &mut Rng) -> Result<Arc<TagSet<T>>> {
        let timeout = Delta::from_millis(100);
        let options = extremes::tag_set_options(rng, Some(timeout));
        let data = if rng.one_in(6) {
            Err(EIO)
        } else {
            Ok(SetData::new(&self.shared))
        };
        TagSet::new(options, data)
    }

    /// Builds a disk with a tag set of its own.
    fn spare_disk(&self, rng: &mut Rng) -> Result<NewDisk<T>> {
        let tags = self.spare_tags(rng)?;
        self.build(tags, rng, true)
    }

    /// Has containers with some values dropped at the call site.
    fn drop_memory_at_site(&self, rng: &mut Rng) -> Result {
        let memory = KBox::pin_init(Memory::new(), GFP_KERNEL)?;
        for _ in 0..rng.below(64) {
            memory.misuse(CallSite::Task, rng);
        }
        self.drop_at_site(memory)
    }

    fn drop_numbers_at_site(&self, rng: &mut Rng) -> Result {
        let major = BlockMajor::register(c"adversary")?;
        let tags = self.shared.tags().ok_or(ENODEV)?;
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .numbers(
                major.clone(),
                extremes::edge(rng) as u32,
                extremes::edge(rng) as u32,
            )
            .build(c"adv_numbers", Ok(DiskData::new(&self.shared)));
        if let Ok(disk) = disk {
            match rng.below(2) {
                0 => self.drop_at_site(disk.add()?)?,
                _ => self.drop_at_site(disk)?,
            }
        }
        self.drop_at_site(major)
    }

    fn drop_fault_at_site(&self, rng: &mut Rng) -> Result {
        let fault = Fault::new(c"condemned", &extremes::fault_settings(rng))?;
        let _ = fault.should_fail();
        self.drop_at_site(fault)
    }

    fn drop_delay_queue_at_site(&self, rng: &mut Rng) -> Result {
        let delay_queue = T::delay_queue(extremes::delay(rng))?;
        match self.shared.replace_delay_queue(Some(delay_queue)) {
            Some(delay_queue) => self.drop_at_site(delay_queue),
            None => Ok(()),
        }
    }

    fn change_queues(&self, rng: &mut Rng) -> Result {
        if rng.one_in(3) {
            self.shared.fail_queue(rng.below(6) as i64);
        }
        let tags = self.shared.tags().ok_or(ENODEV)?;
        let changed = tags.set_queue_counts(extremes::queue_counts(rng));
        self.shared.fail_queue(-1);
        changed
    }
}

impl<T: Adversary> Scenario for DriverScenario<T> {
    fn act(&self, number: u64) -> Result {
        let mut rng = self.rng.fork(number);
        let alloc_may_fail = number >= ALLOC_MAY_FAIL;
        self.shared.set_alloc_may_fail(alloc_may_fail);
        if self.owned.lock().ended {
            return Err(EBUSY);
        }
        match rng.below(20) {
            // If C fails twice to allocate a queue, it dereferences a NULL pointer ("blk-mq: do not
            // lose a hardware queue for want of memory"). If it fails to register a scheduler, it
            // warns.
            0..=3 if alloc_may_fail => Err(EBUSY),
            // It also warns if it runs out of memory in the middle of the setup of a tag set
            // ("blk-mq: wait for callbacks when a tag set cannot be allocated").
            10..=12 if alloc_may_fail => Err(EBUSY),
            0..=3 => self.change_queues(&mut rng),
            4 | 5 => {
                drop(self.take(&mut rng));
                Ok(())
            }
            6..=8 => self.drop_disk_at_site(&mut rng),
            9 => self.add_another(&mut rng, true),
            10 => {
                let tags = self.spare_tags(&mut rng)?;
                self.drop_at_site(tags)
            }
            11 => {
                let disk = self.spare_disk(&mut rng)?;
                if rng.one_in(2) {
                    return self.drop_at_site(disk);
                }
                drop(self.shared.replace_spare_disk(Some(disk)));
                Ok(())
            }
            12 => {
                let disk = self.spare_disk(&mut rng)?.add()?;
                self.drop_at_site(disk)
            }
            13 => self.drop_memory_at_site(&mut rng),
            14 => self.drop_at_site(BadBlocks::new()?),
            15 => self.drop_fault_at_site(&mut rng),
            16 => self.drop_delay_queue_at_site(&mut rng),
            17 => {
                self.shared.end_stash_at_site();
                Ok(())
            }
            18 if !self.exclusive => self.drop_numbers_at_site(&mut rng),
            _ => {
                self.work();
                Ok(())
            }
        }
    }

    fn work(&self) {
        misuse::under_spin_lock(&self.shared);
        requests::sweep(&self.shared, &mut IoCompletionBatch::new(), CallSite::Task);
    }

    fn misuse_at(&self, site: CallSite) {
        misuse::maybe_misuse(&self.shared, site);
    }

    fn leak(&self, leak: Leak) -> Result {
        let mut rng = self.rng.fork(leak as u64);
        match leak {
            Leak::GenDisk => forget(self.take(&mut rng).ok_or(ENODEV)?),
            Leak::NewDisk => {
                let tags = self.shared.tags().ok_or(ENODEV)?;
                forget(self.build(tags, &mut rng, false)?);
            }
            Leak::TagSet => forget(self.shared.tags().ok_or(ENODEV)?),
            Leak::DelayQueue => forget(T::delay_queue(Delta::from_millis(1))?),
            Leak::Memory => {
                let memory = KBox::pin_init(Memory::new(), GFP_KERNEL)?;
                for _ in 0..64 {
                    memory.misuse(CallSite::Task, &mut rng);
                }
                forget(memory);
            }
            Leak::SubmittedBio
            | Leak::OwnedBio
            | Leak::Clones
            | Leak::BdevFile
            | Leak::BioDelayQueue => return Err(EOPNOTSUPP),
            Leak::Removed => self.shared.memory.leak_removed()?,
            _ => self.shared.leak_next(leak),
        }
        Ok(())
    }

    fn leaks(&self) -> bool {
        self.shared.leaks_something()
    }

    fn end(&self) -> Result {
        let disks = {
            let mut owned = self.owned.lock();
            owned.ended = true;
            core::mem::replace(&mut owned.disks, KVec::new())
        };
        drop(disks);
        drop(self.shared.replace_delay_queue(None));
        drop(self.shared.replace_spare_disk(None));
        drop(self.shared.replace_tags(None));
        for _ in 0..END_TIMEOUT_MS {
            while let Some(handle) = self.shared.take_to_drop() {
                drop(handle);
            }
            if self.shared.live() == 0 {
                // Outside of the lock, since the drop waits for the timer.
                let sweeper = self.owned.lock().sweeper.take();
                drop(sweeper);
                drop(self.shared.take_stash());
                drop(self.shared.take_until_timeout());
                drop(self.shared.take_to_end());
                return Ok(());
            }
            fsleep(Delta::from_millis(1));
        }
        let live = self.shared.live();
        pr_err!("step {}: {live} objects were not dropped\n", self.step);
        Err(ETIMEDOUT)
    }
}
