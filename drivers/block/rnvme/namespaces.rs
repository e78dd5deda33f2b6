// SPDX-License-Identifier: GPL-2.0

//! The disks of a controller's namespaces, which are looked for by a worker.
//!
//! The worker holds no lock that a reset needs to let I/O end: a disk is read while it is added,
//! and if that I/O times out, the controller is reset.

use super::{
    admin::AdminQueue,
    budget::Budget,
    command::Identify,
    disk_files,
    disk_limits::{
        disk_limits,
        Abilities, //
    },
    generic::{
        self,
        Generic, //
    },
    identify::{
        active_list::ActiveList,
        controller::MAX_NAMESPACES,
        descriptors::Identifiers,
        namespace,
        Answer, //
    },
    io_queue::{
        Io,
        Namespace,
        Shared, //
    },
    link::{
        Link,
        State,
        RESET_LIMIT, //
    },
    names,
    params,
    queue_pair::Gate,
    quirks::Quirks, //
};
use kernel::{
    block::{
        gendisk::{
            Frozen,
            GenDisk,
            GenDiskBuilder,
            Parent, //
        },
        limits::QueueLimits,
        mq::{
            DiskHandle,
            TagSet, //
        },
        Sectors, //
    },
    device_class::ClassDevice,
    dma::bound::DmaDevice,
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    str::CString,
    sync::{
        atomic::Atomic,
        static_lock_class,
        Arc,
        Mutex,
        MutexGuard, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

/// What the worker needs to make disks.
pub(crate) struct Source {
    pub(crate) admin: Arc<AdminQueue>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) dma: Arc<DmaDevice>,
    pub(crate) parent: Arc<Parent>,
    /// The number of the controller.
    pub(crate) instance: usize,
    pub(crate) quirks: Quirks,
    /// Last: it keeps the module in memory, whose code drops the rest, also in the worker.
    pub(crate) tags: Arc<TagSet<Io>>,
}

/// A disk, with what the controller said of its namespace.
struct Entry {
    /// First: it is not there without the disk.
    _generic: Option<ClassDevice<Generic>>,
    nsid: u32,
    /// The number in the name of the disk.
    number: u32,
    found: namespace::Namespace,
    /// The namespace may have another format, so no command of the disk reaches it any more.
    is_stale: bool,
    identifiers: Identifiers,
    limits: QueueLimits,
    disk: GenDisk<Io>,
}

impl Entry {
    fn forget_if(&mut self, is_stale: bool) {
        if is_stale {
            self.is_stale = true;
            self.disk.queue_data().forget();
        }
    }

    /// Gives the disk, which is frozen, these limits. What users have chosen in sysfs remains.
    fn update_limits(&mut self, new: QueueLimits) -> Result {
        self.disk.update_limits(|limits| {
            *limits = QueueLimits {
                rotational: limits.rotational,
                stable_writes: limits.stable_writes,
                ..new
            }
        })?;
        self.limits = new;
        Ok(())
    }
}

/// The disks of a controller, which accept no I/O until this is dropped.
pub(crate) struct FrozenDisks<'a> {
    namespaces: &'a Namespaces,
    disks: KVec<Frozen>,
    /// Last: no disk is made before.
    _changes: MutexGuard<'a, ()>,
}

impl Drop for FrozenDisks<'_> {
    fn drop(&mut self) {
        self.namespaces.forget_changed();
        self.disks.drain_all().for_each(Frozen::unfreeze);
    }
}

/// The disks of a controller.
#[pin_data]
pub(crate) struct Namespaces {
    /// Held while the worker makes and removes disks. The first of these locks.
    #[pin]
    updates: Mutex<()>,
    /// Held while disks are made, and while a command changes namespaces. Tasks that access a disk
    /// wait for it, so no disk is removed by a task that holds it. Before `entries`.
    #[pin]
    changes: Mutex<()>,
    /// [`None`] when there are to be no disks any more.
    #[pin]
    entries: Mutex<Option<KVec<Entry>>>,
    /// The last of these locks.
    #[pin]
    abilities: Mutex<Abilities>,
    #[pin]
    work: Work<Self>,
    source: Source,
}

impl_has_work! {
    impl HasWork<Self> for Namespaces { self.work }
}

impl WorkItem for Namespaces {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // A reset interrupts this, and has it done again.
        match (this.update(), this.link().state()) {
            (Err(EAGAIN), State::Live) => {
                fsleep(RETRY_DELAY);
                this.scan();
            }
            (Err(error), State::Live) if this.may_log() => {
                let dev = this.link().registers.device();
                dev_err!(dev, "the disks are not up to date: {error:?}\n");
            }
            _ => {}
        }
    }
}

impl Namespaces {
    pub(crate) fn new(source: Source, abilities: Abilities) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                updates <- new_mutex!(()),
                changes <- new_mutex!(()),
                entries <- new_mutex!(Some(KVec::new())),
                abilities <- new_mutex!(abilities),
                work <- new_work!("Namespaces::work"),
                source,
            }),
            GFP_KERNEL,
        )
    }

    /// Has a worker look for namespaces, and make, change and remove disks. Never sleeps.
    pub(crate) fn scan(self: &Arc<Self>) {
        let _ = workqueue::system_long().enqueue(self.clone());
    }

    /// Says what the controller can do after a reset. The next [`Self::scan`] changes the limits of
    /// the disks.
    pub(crate) fn set_abilities(&self, abilities: Abilities) {
        *self.abilities.lock() = abilities;
    }

    fn abilities(&self) -> Abilities {
        *self.abilities.lock()
    }

    /// Marks all disks as dead, after the controller was given up.
    pub(crate) fn mark_dead(&self) {
        for entry in self.entries.lock().iter().flatten() {
            let _ = entry.disk.mark_dead();
        }
    }

    /// Removes all disks. There are none from now on.
    ///
    /// Waits for the requests, and for a worker that makes disks. The controller was retired
    /// before, so what does not end in time fails.
    pub(crate) fn remove(&self) {
        let _updates = self.updates.lock();
        let changes = self.changes.lock();
        let entries = self.entries.lock().take();
        drop(changes);
        drop(entries);
    }

    /// Has no I/O in progress on any disk until what this returns is dropped. Waits for that in
    /// progress, also for commands of users.
    ///
    /// No I/O that was made for another format reaches a namespace after that.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the disks are being removed.
    pub(crate) fn freeze(&self) -> Result<FrozenDisks<'_>> {
        let changes = self.changes.lock();
        let disks = self.freeze_start()?;
        let frozen = FrozenDisks {
            namespaces: self,
            disks,
            _changes: changes,
        };
        frozen.disks.iter().try_for_each(Frozen::wait)?;
        Ok(frozen)
    }

    fn freeze_start(&self) -> Result<KVec<Frozen>> {
        let guard = self.entries.lock();
        let entries = guard.as_ref().ok_or(ENODEV)?;
        // To reclaim memory may need a disk that is frozen, so it is there before.
        let mut disks = KVec::with_capacity(entries.len(), GFP_KERNEL)?;
        for entry in entries {
            match entry.disk.freeze_start() {
                Ok(disk) => disks.push(disk, GFP_KERNEL)?,
                // It is dead: the controller is not used any more.
                Err(ENODEV) => (),
                Err(error) => return Err(error),
            }
        }
        Ok(disks)
    }

    /// Takes the namespaces away from disks for which they have another format than before, or
    /// might have.
    ///
    /// The disks are not marked as dead here: a file system may then wait for I/O of another disk
    /// that is frozen.
    fn forget_changed(&self) {
        for attempt in 1..=ATTEMPTS {
            // A reset may have interrupted the command, or the questions.
            let budget = Budget::uninterrupted(RESET_LIMIT);
            let _ = self.link().wait_for_reset(&budget);
            if self.try_forget_changed(attempt == ATTEMPTS) {
                break;
            }
        }
    }

    /// Returns the entries, or [`None`] as soon as the controller was stopped for good, and gets no
    /// I/O any more. Then a task that marks a disk as dead may hold the lock, and its file system
    /// wait for I/O of another disk, which is frozen.
    fn entries_of_frozen(&self) -> Option<MutexGuard<'_, Option<KVec<Entry>>>> {
        while self.source.admin.pair().gate() != Gate::Dead {
            if let Some(entries) = self.entries.try_lock() {
                return Some(entries);
            }
            fsleep(Delta::from_millis(1));
        }
        None
    }

    /// Asks for the format of each namespace. Returns whether there was an answer for all; without
    /// one, a namespace is taken away if there is to be no doubt.
    fn try_forget_changed(&self, no_doubt: bool) -> bool {
        let mut is_sure = true;
        let Some(mut entries) = self.entries_of_frozen() else {
            return true;
        };
        for entry in entries.iter_mut().flatten() {
            // This allocates in a NOIO scope: to reclaim memory may need a disk that is frozen.
            let answer = self.ask_anyway(Identify::Namespace(entry.nsid));
            let answer = answer.ok().flatten();
            let Some(answer) = answer.as_ref().and_then(|answer| answer.first_chunk()) else {
                is_sure = false;
                entry.forget_if(no_doubt);
                continue;
            };
            let found = self.parse(answer).ok();
            let is_same = found.is_some_and(|it| entry.found.is_compatible_with(&it));
            entry.forget_if(!is_same);
        }
        is_sure
    }

    /// Returns the only disk that there is.
    ///
    /// # Errors
    ///
    /// `ENOTTY` if there is none, `EINVAL` if there are several.
    pub(crate) fn only(&self) -> Result<DiskHandle<Io>> {
        match self.entries.lock().as_deref() {
            Some([entry]) => entry.disk.handle().ok_or(ENOTTY),
            Some([_, _, ..]) => Err(EINVAL),
            _ => Err(ENOTTY),
        }
    }

    fn link(&self) -> &Link {
        &self.source.shared.link
    }

    /// Returns whether to log a message about a namespace.
    fn may_log(&self) -> bool {
        self.link().may_log_of_namespaces()
    }

    /// Asks the controller, and returns its answer; [`None`] if it refuses to answer.
    ///
    /// Fails if the controller is not used any more, so that nothing waits for the worker for long.
    fn ask(&self, what: Identify) -> Result<Option<KVVec<u8>>> {
        if self.link().state() == State::Dead {
            return Err(ENODEV);
        }
        self.ask_anyway(what)
    }

    /// Asks also a controller that is about to be stopped.
    fn ask_anyway(&self, what: Identify) -> Result<Option<KVVec<u8>>> {
        let (completion, answer) = self.source.admin.identify(what)?;
        if !completion.status().is_success() {
            let code = completion.status().code();
            if self.may_log() {
                dev_warn!(
                    self.link().registers.device(),
                    "{} failed: status {code:#x}\n",
                    format_args!("Identify {what}")
                );
            }
            return Ok(None);
        }
        Ok(answer)
    }

    /// Makes the disks those of the namespaces that there are now.
    fn update(&self) -> Result {
        let _updates = self.updates.lock();
        // The second time makes what replaces disks. A controller that lies may have more replaced.
        for _ in 0..2 {
            let mut gone = KVec::new();
            let result = self.update_once(&mut gone);
            let is_done = gone.is_empty();
            // Waits for tasks that access these disks, which may wait for the locks.
            drop(gone);
            result?;
            if is_done {
                break;
            }
        }
        Ok(())
    }

    /// Updates the disks, but leaves it to the caller to drop those that are gone, and then to make
    /// those that replace some.
    fn update_once(&self, gone: &mut KVec<Entry>) -> Result {
        let _changes = self.changes.lock();
        let result = self.update_entries(gone);
        // Also after an error: what the controller can do is known nevertheless.
        result.and(self.update_limits(gone))
    }

    /// Makes disks and changes them. Leaves it to the caller to drop those that are gone.
    fn update_entries(&self, gone: &mut KVec<Entry>) -> Result {
        let mut guard = self.entries.lock();
        let Some(entries) = &mut *guard else {
            return Ok(());
        };
        let mut present = KVec::new();
        let result = self.list(|nsid| {
            present.push(nsid, GFP_KERNEL)?;
            self.update_namespace(entries, nsid, gone)
        });
        // After an error, it is not known which are gone.
        result?;
        let mut at = 0;
        while let Some(entry) = entries.get(at) {
            if present.contains(&entry.nsid) {
                at += 1;
                continue;
            }
            let dev = self.link().registers.device();
            if self.may_log() {
                dev_info!(dev, "namespace {} is gone\n", entry.nsid);
            }
            remove(entries, at, gone)?;
        }
        Ok(())
    }

    /// Gives the disks the limits that follow from what the controller can do now. Removes those
    /// for which there are none.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if a disk has I/O for too long. It keeps its limits then, and goes on with I/O.
    fn update_limits(&self, gone: &mut KVec<Entry>) -> Result {
        let mut result = Ok(());
        let mut after = 0;
        // After a reset there may be others.
        while self.link().state() == State::Live {
            let Some((nsid, limits, frozen)) = self.freeze_next(after)? else {
                break;
            };
            after = nsid;
            // Without the lock of the entries: `mark_dead`, which ends the wait, takes it.
            let is_idle = frozen.wait_timeout(params::io_timeout())?;
            let mut guard = self.entries.lock();
            let Some(entries) = &mut *guard else {
                return Err(ENODEV);
            };
            let at = entries.iter().position(|entry| entry.nsid == nsid);
            let at = at.ok_or(ENODEV)?;
            let updated = if is_idle {
                entries[at].update_limits(limits)
            } else {
                Err(EAGAIN)
            };
            frozen.unfreeze();
            let dev = self.link().registers.device();
            match updated {
                Ok(()) if self.may_log() => {
                    dev_info!(dev, "namespace {nsid} has other limits now\n")
                }
                Err(EAGAIN) => result = Err(EAGAIN),
                // As one with these limits has no disk when the driver is bound.
                Err(EINVAL) => {
                    if self.may_log() {
                        dev_err!(
                            dev,
                            "namespace {nsid} does not fit the limits of the controller\n"
                        );
                    }
                    remove(entries, at, gone)?;
                }
                _ => {}
            }
        }
        result
    }

    /// Begins to freeze the disk with the lowest number of a namespace above `after` that has other
    /// limits than it should have, and returns these.
    fn freeze_next(&self, after: u32) -> Result<Option<(u32, QueueLimits, Frozen)>> {
        let abilities = self.abilities();
        let guard = self.entries.lock();
        let wanted = |entry: &Entry| disk_limits(&abilities, &entry.found, &self.source.dma);
        let next = guard
            .iter()
            .flatten()
            .filter(|entry| entry.nsid > after && !entry.is_stale && entry.limits != wanted(entry))
            .min_by_key(|entry| entry.nsid);
        let Some(entry) = next else {
            return Ok(None);
        };
        let frozen = entry.disk.freeze_start()?;
        Ok(Some((entry.nsid, wanted(entry), frozen)))
    }

    /// Calls `visit` with the number of each namespace.
    fn list(&self, mut visit: impl FnMut(u32) -> Result) -> Result {
        let Abilities {
            identity, version, ..
        } = self.abilities();
        let mut list = ActiveList::new(identity.max_namespaces);
        // Older controllers have no list.
        while version.is_at_least(1, 1) {
            let Some(answer) = self.ask(Identify::ActiveList(list.after()))? else {
                break;
            };
            let answer: &Answer = answer.first_chunk().ok_or(EIO)?;
            if !list.walk(answer, &mut visit)? {
                return Ok(());
            }
        }
        let last = identity.highest_nsid.min(MAX_NAMESPACES);
        (list.after() + 1..=last).try_for_each(visit)
    }

    /// Makes a disk of a namespace, or changes its capacity, or removes the disk that has to be
    /// replaced. A namespace that is not usable has no disk.
    fn update_namespace(
        &self,
        entries: &mut KVec<Entry>,
        nsid: u32,
        gone: &mut KVec<Entry>,
    ) -> Result {
        let dev = self.link().registers.device();
        let old = entries.iter().position(|entry| entry.nsid == nsid);
        let Some(answer) = self.ask(Identify::Namespace(nsid))? else {
            return match old {
                Some(at) if entries[at].is_stale => remove(entries, at, gone),
                _ => Ok(()),
            };
        };
        let usable = match self.parse(answer.first_chunk().ok_or(EIO)?) {
            Ok(found) => match self.identifiers(nsid, &found)? {
                identifiers if identifiers.is_nvm() => Ok((found, identifiers)),
                _ => Err(namespace::Unusable::CommandSet),
            },
            Err(unusable) => Err(unusable),
        };
        let (found, identifiers) = match usable {
            Ok(usable) => usable,
            Err(unusable) => {
                let reason = unusable.reason();
                if self.may_log() {
                    dev_info!(dev, "namespace {nsid} is not usable: {reason}\n");
                }
                if let Some(old) = old {
                    remove(entries, old, gone)?;
                }
                return Ok(());
            }
        };
        if let Some(at) = old {
            let entry = &mut entries[at];
            let is_same = entry.identifiers == identifiers;
            let is_compatible = !entry.is_stale && entry.found.is_compatible_with(&found);
            if is_same && is_compatible {
                if entry.found.sectors != found.sectors {
                    if self.may_log() {
                        dev_info!(dev, "namespace {nsid} has {} sectors now\n", found.sectors);
                    }
                    entry.disk.set_capacity(Sectors(found.sectors))?;
                }
                // Which lengths of I/O are fast may have changed as well.
                entry.found = found;
                return Ok(());
            }
            if self.may_log() {
                let what = if is_same {
                    "has another format"
                } else {
                    "is another one"
                };
                dev_info!(dev, "namespace {nsid} {what} now\n");
            }
            return remove(entries, at, gone);
        }
        if self.may_log() {
            let block = 1u32 << found.block_shift;
            dev_info!(
                dev,
                "namespace {nsid}: {} sectors, blocks of {block} bytes\n",
                found.sectors
            );
            if let Some(uuid) = identifiers.uuid {
                let uuid = disk_files::Uuid(uuid);
                dev_info!(dev, "namespace {nsid}: {}\n", format_args!("uuid {uuid}"));
            }
        }
        // A disk that is in the system is not dropped under the locks that are held here: that
        // would wait for its ioctls, which may wait for these locks.
        entries.reserve(1, GFP_KERNEL)?;
        match self.add(entries, gone, nsid, found, identifiers) {
            Ok(entry) => entries.push(entry, GFP_KERNEL)?,
            // The others may be usable.
            Err(error) if self.may_log() => {
                dev_err!(dev, "namespace {nsid} has no disk: {error:?}\n")
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Parses what the controller says of a namespace, but for identifiers that are not its own.
    fn parse(&self, answer: &Answer) -> Result<namespace::Namespace, namespace::Unusable> {
        let mut found = namespace::Namespace::parse(answer)?;
        if self.source.quirks.has_bogus_ids {
            found.eui64 = None;
            found.nguid = None;
        }
        Ok(found)
    }

    /// Returns the identifiers of a namespace: those of the list first.
    fn identifiers(&self, nsid: u32, found: &namespace::Namespace) -> Result<Identifiers> {
        let Quirks {
            has_bogus_ids,
            has_no_id_list,
            ..
        } = self.source.quirks;
        let mut listed = Identifiers::default();
        // Older controllers do not know the question.
        if self.abilities().version.is_at_least(1, 3) && !has_no_id_list {
            if let Some(answer) = self.ask(Identify::Descriptors(nsid))? {
                listed = Identifiers::parse(answer.first_chunk().ok_or(EIO)?);
            }
        }
        if has_bogus_ids {
            return Ok(Identifiers {
                command_set: listed.command_set,
                ..Identifiers::default()
            });
        }
        Ok(Identifiers {
            eui64: listed.eui64.or(found.eui64),
            nguid: listed.nguid.or(found.nguid),
            ..listed
        })
    }

    /// Makes a disk with the lowest number that is free. That of a disk which is gone, but not
    /// dropped yet, is not.
    fn add(
        &self,
        entries: &[Entry],
        gone: &[Entry],
        nsid: u32,
        found: namespace::Namespace,
        ids: Identifiers,
    ) -> Result<Entry> {
        let Source {
            shared,
            tags,
            dma,
            parent,
            instance,
            ..
        } = &self.source;
        let abilities = self.abilities();
        let limits = disk_limits(&abilities, &found, dma);
        let disks = [entries, gone];
        let taken = || disks.into_iter().flatten().map(|entry| entry.number);
        let is_free = |number: &u32| taken().all(|it| it != *number);
        let number = (1..).find(is_free).ok_or(ENOSPC)?;
        let name = CString::try_from_fmt(fmt!("{}{instance}n{number}", names::CONTROLLERS))?;
        let data = Namespace {
            shared: shared.clone(),
            nsid,
            addressed: Atomic::new(nsid),
            block_shift: found.block_shift - 9,
            atomic_writes: found.atomic_writes,
            zeroes_may_deallocate: found.discard_zeroes && found.zeroes_may_discard,
            wwid: disk_files::worldwide_name(&abilities.identity, nsid, &ids)?,
            ids,
        };
        let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
            .limits(limits)
            .capacity(Sectors(found.sectors))
            .dma_device(dma.clone())
            .parent(parent.clone())
            .attributes(disk_files::ATTRIBUTES)
            .build(&name, Ok(data))?
            .add()?;
        let generic = disk.handle().ok_or(ENODEV).and_then(|handle| {
            generic::add(
                handle,
                shared.ioctls.clone(),
                parent.clone(),
                *instance,
                number,
            )
        });
        let generic = generic.inspect_err(|error| {
            let dev = self.link().registers.device();
            if self.may_log() {
                dev_err!(dev, "namespace {nsid} has no character device: {error:?}\n");
            }
        });
        Ok(Entry {
            _generic: generic.ok(),
            nsid,
            number,
            found,
            is_stale: false,
            identifiers: ids,
            limits,
            disk,
        })
    }
}

/// How long a disk gets I/O before the next attempt to change its limits.
const RETRY_DELAY: Delta = Delta::from_secs(1);

/// How often the formats of namespaces are asked for, if resets interrupt that.
const ATTEMPTS: usize = 3;

/// Removes a disk, of which nothing is written back: its blocks are not those of before.
fn remove(entries: &mut KVec<Entry>, at: usize, gone: &mut KVec<Entry>) -> Result {
    gone.reserve(1, GFP_KERNEL)?;
    let entry = entries.remove(at).map_err(|_| EINVAL)?;
    let _ = entry.disk.mark_dead();
    gone.push(entry, GFP_KERNEL)?;
    Ok(())
}
