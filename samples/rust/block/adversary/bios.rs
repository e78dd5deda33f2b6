// SPDX-License-Identifier: GPL-2.0

//! All that safe code can do with bios.

use super::{
    call_site::CallSite,
    drivers::Bare,
    extremes,
    leak::Leak,
    misuse::maybe_misuse,
    requests,
    rng::Rng,
    shared::Shared,
    sweeper::Sweep,
    transfer, //
};
use core::mem::forget;
use kernel::{
    block::{
        bdev::{
            Access,
            BdevFile, //
        },
        bio_based::{
            Clones,
            DelayQueue,
            Operations,
            OwnedBio,
            Step,
            SubmittedBio, //
        },
        mq::Op,
        BlkResult,
        BlkStatus,
        Sector,
        Sectors, //
    },
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// The maximum number of bios of each kind that are kept.
const ROOM: usize = 16;

/// The driver.
pub(crate) enum Bio {}

/// What is kept, of any disk.
struct Held {
    bios: [Option<OwnedBio<Bio>>; ROOM],
    clones: [Option<Clones<Bio>>; ROOM],
    delay_queue: Option<Arc<DelayQueue<Bio>>>,
    /// A device that nobody submits to.
    spare: Option<BdevFile>,
}

/// The state that the callbacks of a scenario share.
#[pin_data]
pub(crate) struct SharedBios {
    pub(crate) shared: Arc<Shared<Bare>>,
    #[pin]
    held: SpinLockIrq<Held>,
}

/// The data of a disk.
pub(crate) struct BioDisk {
    state: Arc<SharedBios>,
    lower: Option<BdevFile>,
}

impl BioDisk {
    pub(crate) fn new(state: &Arc<SharedBios>, lower: Option<BdevFile>) -> Self {
        state.shared.count_created();
        Self {
            state: state.clone(),
            lower,
        }
    }
}

impl Drop for BioDisk {
    fn drop(&mut self) {
        maybe_misuse(&self.state.shared, CallSite::DropQueueData);
        self.state.shared.count_dropped();
    }
}

impl SharedBios {
    pub(crate) fn new(shared: Arc<Shared<Bare>>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                shared,
                held <- new_spinlock_irq!(Held {
                    bios: [const { None }; ROOM],
                    clones: [const { None }; ROOM],
                    delay_queue: None,
                    spare: None,
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// Replaces the delay queue. Returns the previous one.
    pub(crate) fn replace_delay_queue(
        &self,
        delay_queue: Option<Arc<DelayQueue<Bio>>>,
    ) -> Option<Arc<DelayQueue<Bio>>> {
        core::mem::replace(&mut self.held.lock().delay_queue, delay_queue)
    }

    /// Replaces the device that nobody submits to. Returns the previous one.
    pub(crate) fn replace_spare(&self, spare: Option<BdevFile>) -> Option<BdevFile> {
        core::mem::replace(&mut self.held.lock().spare, spare)
    }

    /// Keeps a bio, or ends it if there is no room.
    fn keep(&self, bio: OwnedBio<Bio>) {
        let mut held = self.held.lock();
        match held.bios.iter_mut().find(|room| room.is_none()) {
            Some(room) => *room = Some(bio),
            None => {
                drop(held);
                bio.end(Ok(()));
            }
        }
    }

    /// Keeps clones, or ends them if there is no room.
    fn keep_clones(&self, clones: Clones<Bio>) {
        let mut held = self.held.lock();
        match held.clones.iter_mut().find(|room| room.is_none()) {
            Some(room) => *room = Some(clones),
            None => {
                drop(held);
                clones.end(Ok(()));
            }
        }
    }

    fn take(&self) -> Option<OwnedBio<Bio>> {
        self.held.lock().bios.iter_mut().find_map(Option::take)
    }

    fn take_clones(&self) -> Option<Clones<Bio>> {
        self.held.lock().clones.iter_mut().find_map(Option::take)
    }

    /// Ends all that is kept, or does something else with it.
    pub(crate) fn finish(&self, site: CallSite) {
        maybe_misuse(&self.shared, site);
        let mut rng = self.shared.rng_at(site);
        for _ in 0..ROOM {
            let Some(bio) = self.take() else { break };
            owned(self, bio, site, &mut rng);
        }
        for _ in 0..ROOM {
            let Some(clones) = self.take_clones() else {
                break;
            };
            end_clones(self, clones, &mut rng, 0);
        }
    }

    /// Ends all that is kept.
    pub(crate) fn end(&self) {
        while let Some(bio) = self.take() {
            drop(bio);
        }
        while let Some(clones) = self.take_clones() {
            drop(clones);
        }
    }
}

impl Sweep for SharedBios {
    fn sweep(&self) {
        self.finish(CallSite::Interrupt);
    }
}

#[vtable]
impl Operations for Bio {
    type QueueData = BioDisk;
    const RESERVED_CLONES: u32 = 1;

    fn submit_bio<'q>(bio: SubmittedBio<'q, Self>) {
        let disk = bio.queue_data();
        let (state, shared) = (&*disk.state, &disk.state.shared);
        if shared.leaks(Leak::SubmittedBio) {
            return forget(bio);
        }
        maybe_misuse(shared, CallSite::SubmitBio);
        let mut rng = shared
            .rng_at(CallSite::SubmitBio)
            .fork(bio.sector().0)
            .fork(bio.bytes().into());
        match rng.below(16) {
            0 => drop(bio),
            1 => bio.end(requests::result(&mut rng)),
            2 => {
                fsleep(Delta::from_micros(rng.below(500) as i64));
                bio.end(Ok(()));
            }
            3 => {
                // I/O of this task would wait for this bio.
                let opened = BdevFile::open_by_path(c"/dev/vda", Access::ReadOnly);
                if opened.err() != Some(EDEADLK) {
                    pr_err!("a device was opened in submit_bio\n");
                }
                bio.end(Ok(()));
            }
            4..=6 => {
                let outcome = serve(shared, &bio, &mut rng);
                bio.end(outcome);
            }
            7 => end_later(state, bio.keep(), &mut rng),
            _ if shared.leaks(Leak::OwnedBio) => forget(bio.keep()),
            8..=12 if disk.lower.is_some() => {
                clones(state, bio.keep(), disk.lower.as_ref(), &mut rng);
            }
            _ => owned(state, bio.keep(), CallSite::SubmitBio, &mut rng),
        }
        maybe_misuse(shared, CallSite::SubmitBio);
    }

    fn clones_ended(bio: OwnedBio<Self>, result: BlkResult) {
        let state = bio.queue_data().state.clone();
        maybe_misuse(&state.shared, CallSite::ClonesEnded);
        let mut rng = state.shared.rng_at(CallSite::ClonesEnded);
        match rng.below(4) {
            0 => owned(&state, bio, CallSite::ClonesEnded, &mut rng),
            _ => bio.end(result),
        }
        maybe_misuse(&state.shared, CallSite::ClonesEnded);
    }
}

/// Carries out the steps of a bio, in the callback that was given it.
fn serve(shared: &Shared<Bare>, bio: &SubmittedBio<'_, Bio>, rng: &mut Rng) -> BlkResult {
    let at = bio.sector().bytes();
    bio.steps().try_for_each(|step| match step {
        Step::Flush => requests::result(rng),
        Step::Transfer => {
            let len = bio.bytes();
            transfer::carry_out(shared, bio.op(), at, len, bio.transfer(), rng)
        }
    })
}

/// Does one of many things with a bio, in any context.
fn owned(state: &SharedBios, bio: OwnedBio<Bio>, site: CallSite, rng: &mut Rng) {
    match rng.below(12) {
        0 => drop(bio),
        1 => bio.end(requests::result(rng)),
        2 => end_later(state, bio, rng),
        3 => {
            transfer::transfer_dummy(bio.transfer(), rng);
            bio.end(Ok(()));
        }
        // Without another disk, nothing can be submitted.
        4 => clones(state, bio, None, rng),
        5 | 6 if site != CallSite::Task => state.keep(bio),
        _ => bio.end(Ok(())),
    }
}

/// Has the timer of a delay queue end a bio.
fn end_later(state: &SharedBios, bio: OwnedBio<Bio>, rng: &mut Rng) {
    let Some(queue) = state.held.lock().delay_queue.clone() else {
        return bio.end(Ok(()));
    };
    // Dropping the bio that is refused ends it, too.
    drop(queue.end_later(bio, requests::result(rng), GFP_NOWAIT));
}

/// Submits clones of a bio, most of them right.
fn clones(state: &SharedBios, bio: OwnedBio<Bio>, lower: Option<&BdevFile>, rng: &mut Rng) {
    let mut clones = bio.into_clones();
    let (start, len) = (clones.sector(), clones.sectors());
    let mut submitted = 0;
    for _ in 0..1 + rng.below(3) {
        let Some(lower) = lower else { break };
        let (mut from, mut to, mut sector) = (0, len.0, start);
        match rng.below(8) {
            0 => from = extremes::edge(rng),
            1 => to = extremes::edge(rng),
            2 => sector = Sector(extremes::edge(rng)),
            3 => {
                from = rng.below(len.0 + 1);
                to = from + rng.below(len.0 + 1 - from);
            }
            _ => {}
        }
        let done = clones.submit(Sectors(from)..Sectors(to), lower, sector);
        if to > len.0 && done.is_ok() {
            pr_err!("a clone is longer than its bio\n");
        }
        submitted += u64::from(done.is_ok());
    }
    if clones.op() == Op::Flush {
        pr_err!("a flush is no bio\n");
    }
    end_clones(state, clones, rng, submitted);
}

/// Ends clones, or keeps them.
fn end_clones(state: &SharedBios, clones: Clones<Bio>, rng: &mut Rng, submitted: u64) {
    if state.shared.leaks(Leak::Clones) {
        return forget(clones);
    }
    match rng.below(6) {
        0 => drop(clones),
        1 => clones.end(Err(BlkStatus::NOSPC)),
        2 if submitted != 0 => state.keep_clones(clones),
        _ => clones.end(Ok(())),
    }
}
