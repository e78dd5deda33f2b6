// SPDX-License-Identifier: GPL-2.0

//! The disks of a controller's namespaces, which are looked for by a worker.
//!
//! The worker holds no lock that a reset needs: a disk is read while it is added, and if that I/O
//! times out, the controller is reset.

use super::{
    admin::AdminQueue,
    budget::Budget,
    command::{
        Identify,
        MAX_DEALLOCATE_RANGES, //
    },
    disk_files,
    generic::{
        self,
        Generic, //
    },
    identify::{
        active_list::ActiveList,
        controller::{
            Controller,
            MAX_NAMESPACES, //
        },
        descriptors::Identifiers,
        namespace::{
            self,
            AtomicWrites, //
        },
        nvm_limits::NvmLimits,
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
    prp,
    queue_pair::Gate,
    quirks::Quirks,
    registers::Version,
    sgl, //
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
            memalloc_noio,
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
    pub(crate) identity: Controller,
    pub(crate) quirks: Quirks,
    pub(crate) limits: NvmLimits,
    pub(crate) version: Version,
    /// Last: it keeps the module in memory, of which the worker may drop the rest.
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
    disk: GenDisk<Io>,
}

impl Entry {
    fn forget_if(&mut self, is_stale: bool) {
        if is_stale {
            self.is_stale = true;
            self.disk.queue_data().forget();
        }
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
        if let (Err(error), State::Live) = (this.update(), this.link().state()) {
            let dev = this.link().registers.device();
            if this.may_log() {
                dev_err!(dev, "the namespaces were not all found: {error:?}\n");
            }
        }
    }
}

impl Namespaces {
    pub(crate) fn new(source: Source) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                updates <- new_mutex!(()),
                changes <- new_mutex!(()),
                entries <- new_mutex!(Some(KVec::new())),
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

    /// Returns what the controller could do when the first disks were made.
    pub(crate) fn identity(&self) -> &Controller {
        &self.source.identity
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
        // To reclaim memory may need a disk that is frozen.
        let disks = memalloc_noio(|| self.freeze_start())?;
        let frozen = FrozenDisks {
            namespaces: self,
            disks,
            _changes: changes,
        };
        frozen.disks.iter().try_for_each(Frozen::wait)?;
        Ok(frozen)
    }

    fn freeze_start(&self) -> Result<KVec<Frozen>> {
        let mut disks = KVec::new();
        for entry in self.entries.lock().as_ref().ok_or(ENODEV)? {
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

    /// Does that also for a controller that is about to be stopped.
    fn ask_anyway(&self, what: Identify) -> Result<Option<KVVec<u8>>> {
        let (completion, answer) = self.source.admin.identify(what)?;
        if !completion.status().is_success() {
            let code = completion.status().code();
            if self.may_log() {
                dev_warn!(
                    self.link().registers.device(),
                    "{what:?} failed: status {code:#x}\n"
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

    /// Does that, but leaves it to the caller to drop the disks that are gone, and then to make
    /// those that replace some.
    fn update_once(&self, gone: &mut KVec<Entry>) -> Result {
        let _changes = self.changes.lock();
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

    /// Calls `visit` with the number of each namespace.
    fn list(&self, mut visit: impl FnMut(u32) -> Result) -> Result {
        let Source {
            identity, version, ..
        } = &self.source;
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
                    entry.found = found;
                }
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
                let uuid = u128::from_be_bytes(uuid);
                dev_info!(dev, "namespace {nsid}: uuid {uuid:032x}\n");
            }
        }
        match self.add(entries, nsid, found, identifiers) {
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
        if self.source.version.is_at_least(1, 3) && !has_no_id_list {
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

    /// Makes a disk with the lowest number that is free.
    fn add(
        &self,
        entries: &[Entry],
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
            identity,
            limits: nvm_limits,
            ..
        } = &self.source;
        let is_free = |number: &u32| entries.iter().all(|entry| entry.number != *number);
        let number = (1..).find(is_free).ok_or(ENOSPC)?;
        let name = CString::try_from_fmt(fmt!("{}{instance}n{number}", names::CONTROLLERS))?;
        let data = Namespace {
            shared: shared.clone(),
            nsid,
            addressed: Atomic::new(nsid),
            block_shift: found.block_shift - 9,
            atomic_writes: found.atomic_writes,
            zeroes_may_deallocate: found.discard_zeroes && found.zeroes_may_discard,
            wwid: disk_files::worldwide_name(identity, nsid, &ids)?,
            ids,
        };
        let disk = GenDiskBuilder::new(tags.clone(), static_lock_class!())
            .limits(limits(identity, nvm_limits, &found, dma))
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
            disk,
        })
    }
}

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

/// Returns the limits of a namespace.
fn limits(
    identity: &Controller,
    limits: &NvmLimits,
    found: &namespace::Namespace,
    dma: &DmaDevice,
) -> QueueLimits {
    let block = 1u32 << found.block_shift;
    let mapped = dma.max_mapping_size().min(dma.opt_mapping_size());
    let max_transfer = u64::from(identity.max_transfer.min(prp::MAX_BYTES)).min(mapped as u64);
    let most = max_transfer;
    let max_transfer = Sectors::from_bytes(max_transfer);
    let write_zeroes = limits
        .write_zeroes
        .map(|bytes| Sectors::from_bytes(bytes.into()));
    let discard = limits
        .deallocate
        .map(|blocks| Sectors(u64::from(blocks) << (found.block_shift - 9)));
    // A command has 16 bits for the number of blocks.
    let max_write_zeroes = Sectors(1 << (16 + found.block_shift - 9));
    let optional = identity.optional;
    let only_if = |has: bool, sectors| if has { sectors } else { Sectors::ZERO };
    // What is written at least, without a read.
    let preferred = found
        .preferred_write
        .filter(|bytes| bytes.is_power_of_two() && u64::from(*bytes) <= most)
        .map_or(block, |bytes| bytes.max(block));
    let atomic = found.atomic_writes;
    let atomic_unit = atomic.map_or(0, AtomicWrites::max_power_of_two);
    QueueLimits {
        logical_block_size: block,
        // File systems take the write of a physical block for an atomic one.
        physical_block_size: preferred.min(atomic_unit.max(block)),
        io_min: preferred,
        io_opt: found
            .optimal_write
            .filter(|bytes| u64::from(*bytes) <= most)
            .unwrap_or(0),
        max_hw_sectors: max_transfer,
        // A segment per page, and one more if the first is not at the start of one.
        max_segments: (most / prp::PAGE_SIZE + 1).min(sgl::MAX_RANGES as u64) as u16,
        max_segment_size: u32::MAX,
        virt_boundary_mask: if identity.has_sgl {
            0
        } else {
            prp::PAGE_SIZE as usize - 1
        },
        dma_alignment: 3,
        max_hw_discard_sectors: only_if(
            optional.dataset_management,
            discard.map_or(MAX_DISCARD, |discard| discard.min(MAX_DISCARD)),
        ),
        max_discard_segments: limits
            .deallocate_ranges
            .map_or(MAX_DEALLOCATE_RANGES, u16::from),
        discard_granularity: found.preferred_discard.unwrap_or(block).max(block),
        max_write_zeroes_sectors: only_if(
            optional.write_zeroes,
            write_zeroes.map_or(max_transfer, |most| most.min(max_write_zeroes)),
        ),
        atomic_write_hw_max: atomic.map_or(0, |atomic| atomic.max),
        atomic_write_hw_unit_min: atomic.map_or(0, |_| block),
        atomic_write_hw_unit_max: atomic_unit,
        atomic_write_hw_boundary: atomic.map_or(0, |atomic| atomic.boundary),
        write_cache: identity.has_write_cache,
        fua: identity.has_write_cache,
        ..QueueLimits::default()
    }
}

/// The longest discard: C counts its bytes in 32 bits.
const MAX_DISCARD: Sectors = Sectors(u32::MAX as u64 >> 9);
