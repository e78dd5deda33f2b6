// SPDX-License-Identifier: GPL-2.0

//! A scenario of disks that get bios.

use super::{
    bios::{
        Bio,
        BioDisk,
        SharedBios, //
    },
    call_site::CallSite,
    extremes,
    leak::Leak,
    memory::Memory,
    misuse,
    rng::Rng,
    scenario::{
        Scenario,
        DISKS,
        END_TIMEOUT_MS, //
    },
    shared::{
        Handle,
        Shared, //
    },
    sweeper::Sweeper,
};
use core::mem::forget;
use kernel::{
    block::{
        bdev::{
            Access,
            BdevFile, //
        },
        bio_based::DelayQueue,
        gendisk::{
            Bios,
            GenDisk,
            GenDiskBuilder, //
        },
        limits::QueueLimits,
        Sectors, //
    },
    new_mutex,
    prelude::*,
    static_lock_class,
    str::CString,
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

/// What only tasks access.
struct Owned {
    /// The disks, each with its number.
    disks: KVec<(u32, GenDisk<Bio, Bios>)>,
    next: u32,
    ended: bool,
    sweeper: Option<ArcHrTimerHandle<Sweeper<SharedBios>>>,
}

/// A scenario.
#[pin_data]
pub(crate) struct BioScenario {
    step: u64,
    rng: Rng,
    state: Arc<SharedBios>,
    #[pin]
    owned: Mutex<Owned>,
}

impl BioScenario {
    pub(crate) fn begin(
        seed: u64,
        step: u64,
        disabled: u32,
        mut rng: Rng,
    ) -> Result<Arc<dyn Scenario>> {
        let site = CallSite::any(&mut rng);
        pr_info!("seed {seed} step {step}: bios, drops in {site:?}\n");
        let shared = Shared::new(rng.fork(0), site, disabled, false)?;
        let state = SharedBios::new(shared)?;
        let sweeper = Sweeper::start(&state)?;
        let for_scenario = state.clone();
        let scenario = Arc::pin_init(
            pin_init!(Self {
                step,
                rng: rng.fork(1),
                state: for_scenario,
                owned <- new_mutex!(Owned {
                    disks: KVec::new(),
                    next: 0,
                    ended: false,
                    sweeper: Some(sweeper),
                }),
            }),
            GFP_KERNEL,
        )?;
        drop(state.replace_delay_queue(new_delay_queue(&mut rng).ok()));
        for _ in 0..1 + rng.below(3) {
            let _ = scenario
                .add(&mut rng, true)
                .or_else(|_| scenario.add(&mut rng, false));
        }
        let scenario: Arc<dyn Scenario> = scenario;
        Ok(scenario)
    }

    /// Opens one of the disks. It is older than the next one, so disks are not in a circle.
    fn open(&self, rng: &mut Rng) -> Result<BdevFile> {
        let number = {
            let owned = self.owned.lock();
            let index = rng.below(owned.disks.len() as u64) as usize;
            owned.disks.get(index).ok_or(ENODEV)?.0
        };
        let step = self.step;
        let path = CString::try_from_fmt(fmt!("/dev/adv{step}_{number}"))?;
        let access = match rng.below(8) {
            0 => Access::ReadOnly,
            _ => Access::ReadWrite,
        };
        BdevFile::open_by_path(&path, access)
    }

    /// Adds a disk, which may be on top of another one.
    fn add(&self, rng: &mut Rng, any_limits: bool) -> Result {
        let lower = self.open(rng).ok();
        let number = {
            let mut owned = self.owned.lock();
            owned.next += 1;
            owned.next
        };
        let step = self.step;
        let name = CString::try_from_fmt(fmt!("adv{step}_{number}"))?;
        let limits = match &lower {
            Some(lower) if rng.below(4) != 0 => lower.limits()?,
            _ if any_limits => extremes::queue_limits(rng),
            _ => QueueLimits::default(),
        };
        let capacity = match any_limits {
            true => extremes::capacity(rng, &limits),
            false => Sectors::from_mebibytes(16),
        };
        let data = if any_limits && rng.one_in(8) {
            Err(EIO)
        } else {
            Ok(BioDisk::new(&self.state, lower))
        };
        let disk = GenDiskBuilder::bio_based(static_lock_class!())
            .limits(limits)
            .capacity(capacity)
            .build(&name, data)?
            .add()?;
        let mut owned = self.owned.lock();
        if owned.ended || owned.disks.len() >= DISKS {
            drop(owned);
            drop(disk);
            return Err(EBUSY);
        }
        Ok(owned.disks.push((number, disk), GFP_KERNEL)?)
    }

    /// Removes one of the disks from the scenario.
    fn take(&self, rng: &mut Rng) -> Option<GenDisk<Bio, Bios>> {
        let mut owned = self.owned.lock();
        let index = rng.below(owned.disks.len() as u64) as usize;
        owned.disks.remove(index).ok().map(|(_, disk)| disk)
    }

    /// Calls `keep` with an open device, or returns the device if the scenario has ended: a device
    /// that is kept then would keep itself, as it keeps its disk, which has the state it is kept
    /// in.
    fn unless_ended<F>(&self, file: F, keep: impl FnOnce(F) -> Option<F>) -> Option<F> {
        let owned = self.owned.lock();
        if owned.ended {
            Some(file)
        } else {
            keep(file)
        }
    }

    /// Has an object dropped at the call site of the scenario.
    fn drop_at_site(&self, thing: impl Send + 'static) -> Result {
        let handle: Handle = KBox::new(thing, GFP_KERNEL)?;
        // If there are too many, this task drops the object.
        drop(self.state.shared.drop_at_site(handle));
        Ok(())
    }
}

fn new_delay_queue(rng: &mut Rng) -> Result<Arc<DelayQueue<Bio>>> {
    Ok(Arc::new(
        DelayQueue::new(extremes::delay(rng))?,
        GFP_KERNEL,
    )?)
}

impl Scenario for BioScenario {
    fn act(&self, number: u64) -> Result {
        let mut rng = self.rng.fork(number);
        if self.owned.lock().ended {
            return Err(EBUSY);
        }
        match rng.below(12) {
            0 | 1 => {
                drop(self.take(&mut rng));
                Ok(())
            }
            2 | 3 => match self.take(&mut rng) {
                Some(disk) => self.drop_at_site(disk),
                None => self.add(&mut rng, false),
            },
            4..=6 => self.add(&mut rng, true),
            7 => {
                let file: Handle = KBox::new(self.open(&mut rng)?, GFP_KERNEL)?;
                drop(self.unless_ended(file, |file| self.state.shared.drop_at_site(file)));
                Ok(())
            }
            8 => {
                let file = self.open(&mut rng)?;
                drop(self.unless_ended(file, |file| self.state.replace_spare(Some(file))));
                Ok(())
            }
            9 => {
                let queue = new_delay_queue(&mut rng)?;
                match self.state.replace_delay_queue(Some(queue)) {
                    Some(queue) => self.drop_at_site(queue),
                    None => Ok(()),
                }
            }
            10 => {
                let memory = KBox::pin_init(Memory::new(), GFP_KERNEL)?;
                memory.misuse(CallSite::Task, &mut rng);
                self.drop_at_site(memory)
            }
            _ => {
                self.work();
                Ok(())
            }
        }
    }

    fn work(&self) {
        misuse::under_spin_lock(&self.state.shared);
        self.state.finish(CallSite::Task);
    }

    fn misuse_at(&self, site: CallSite) {
        misuse::maybe_misuse(&self.state.shared, site);
    }

    fn leak(&self, leak: Leak) -> Result {
        let mut rng = self.rng.fork(leak as u64);
        match leak {
            Leak::Nothing | Leak::SubmittedBio | Leak::OwnedBio | Leak::Clones => {
                self.state.shared.leak_next(leak);
            }
            Leak::BdevFile => forget(self.open(&mut rng)?),
            Leak::BioDelayQueue => forget(new_delay_queue(&mut rng)?),
            _ => return Err(EOPNOTSUPP),
        }
        Ok(())
    }

    fn leaks(&self) -> bool {
        self.state.shared.leaks_something()
    }

    fn end(&self) -> Result {
        let disks = {
            let mut owned = self.owned.lock();
            owned.ended = true;
            core::mem::replace(&mut owned.disks, KVec::new())
        };
        drop(disks);
        drop(self.state.replace_delay_queue(None));
        drop(self.state.replace_spare(None));
        for _ in 0..END_TIMEOUT_MS {
            while let Some(handle) = self.state.shared.take_to_drop() {
                drop(handle);
            }
            if self.state.shared.live() == 0 {
                // Outside of the lock, since the drop waits for the timer.
                let sweeper = self.owned.lock().sweeper.take();
                drop(sweeper);
                self.state.end();
                return Ok(());
            }
            fsleep(Delta::from_millis(1));
        }
        let live = self.state.shared.live();
        pr_err!("step {}: {live} objects were not dropped\n", self.step);
        Err(ETIMEDOUT)
    }
}
