// SPDX-License-Identifier: GPL-2.0

//! The I/O queues of a controller.

use super::{
    admin::AdminQueue,
    command::{
        granted_queues,
        AdminCommand,
        NewQueue, //
    },
    dispatch::IoDispatch,
    io_queue::{
        InFlightIo,
        Io,
        Ioctls,
        Shared, //
    },
    link::Link,
    lists::Pools,
    names, params,
    queue_counts::{
        cpu_maps,
        divide,
        first_of, //
    },
    queue_pair::{
        Gate,
        Queue,
        QueueOptions,
        QueuePair, //
    },
};
use kernel::{
    block::mq::{
        memalloc_noio,
        QueueCounts,
        TagSet,
        TagSetOptions, //
    },
    device::Bound,
    pci::{
        self,
        vectors::IrqVectors, //
    },
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        Delta,
        Instant,
        Monotonic, //
    },
};

/// How many short lists there are for each I/O queue. A request that gets none is sent again later.
const SHORT_LISTS: usize = 256;

/// How many pages for lists there are for each I/O queue.
const LIST_PAGES: usize = 32;

/// The most of each.
const MOST_LISTS: usize = 4096;

/// The longest delay before a retry that a controller may ask for, in milliseconds. Whatever waits
/// for all requests of a disk has to wait for that, too.
const MAX_RETRY_DELAY: u32 = 5000;

/// The I/O queues of a controller.
///
/// They are made when it is known how many there are. A reset creates them anew for the controller,
/// but never more of them.
pub(crate) struct IoQueues {
    admin: Arc<AdminQueue>,
    link: Arc<Link>,
    ioctls: Arc<dyn Ioctls>,
    made: Option<Made>,
}

/// I/O queues as the block layer knows them.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) tags: Arc<TagSet<Io>>,
    pub(crate) shared: Arc<Shared>,
    /// How many of each kind there were at first.
    first: QueueCounts,
}

/// What the I/O queues are created for.
#[derive(Clone, Copy)]
pub(crate) struct For<'a> {
    pub(crate) dev: &'a pci::Device<Bound>,
    pub(crate) vectors: &'a Arc<IrqVectors>,
    /// The number of the controller.
    pub(crate) instance: usize,
    /// Whether commands may have a scatter-gather list.
    pub(crate) has_sgl: bool,
    /// How long to wait before a retry, as the controller says, in milliseconds.
    pub(crate) retry_delays: [u32; 3],
    /// Whether to create queues even if there are fewer than vectors.
    pub(crate) is_last: bool,
}

impl IoQueues {
    pub(crate) fn new(link: Arc<Link>, admin: Arc<AdminQueue>, ioctls: Arc<dyn Ioctls>) -> Self {
        Self {
            admin,
            link,
            ioctls,
            made: None,
        }
    }

    /// Returns the queues, if they were made.
    pub(crate) fn made(&self) -> Option<&Made> {
        self.made.as_ref()
    }

    /// Returns how many queues the controller has.
    pub(crate) fn count(&self) -> u32 {
        let made = self.made.as_ref();
        made.and_then(|it| it.tags.queue_counts().total())
            .unwrap_or(0)
    }

    /// Creates the I/O queues: as many as there are CPUs, and those that the parameters ask for, or
    /// as the controller and its vectors allow.
    ///
    /// If there can be fewer than vectors, it may return the numbers of these instead.
    pub(crate) fn create(&mut self, with: For<'_>) -> Result<Option<QueueCounts>> {
        let For { dev, vectors, .. } = with;
        let [default, read, ..] = vectors.sets();
        let (_, poll) = params::special_queues();
        // A single vector is for all queues.
        let wanted = QueueCounts {
            default: default.max(1),
            read,
            poll,
        };
        let most = wanted
            .total()
            .unwrap_or(u32::MAX)
            .min(u32::from(u16::MAX) - 1) as u16;
        let (answer, _) = self
            .admin
            .execute(AdminCommand::SetQueueCount(most), None)?;
        if !answer.status().is_success() {
            let code = answer.status().code();
            dev_warn!(dev, "no I/O queues: status {code:#x}\n");
            // Without queues, requests to a disk would wait forever.
            return if self.made.is_some() {
                Err(ENODEV)
            } else {
                Ok(None)
            };
        }
        let granted = granted_queues(most, answer.result()).into();
        let counts = self.limit(wanted, granted);
        if !with.is_last && (counts.default < default || counts.read < read) {
            return Ok(Some(counts));
        }
        let Made { shared, tags, .. } = self.make(with, counts)?;
        shared.has_sgl.store(with.has_sgl, Relaxed);
        for (delay, new) in shared.retry_delays.iter().zip(with.retry_delays) {
            delay.store(new.min(MAX_RETRY_DELAY), Relaxed);
        }
        let link = self.link.clone();
        let options = QueueOptions {
            dev,
            registers: &link.registers,
            alarm: &link.alarm,
            events: None,
            vectors,
            vector: None,
            name: c"",
            id: 0,
            entries: self.entries(),
        };
        let count = counts.total().ok_or(EINVAL)? as usize;
        let mut created = 0;
        for (index, pair) in (0..).zip(&shared.pairs[..count]) {
            let vector = if index < counts.default {
                Some(1 + index)
            } else {
                // The set for reads is behind that of the others.
                let index = index - counts.default;
                (index < counts.read).then_some(1 + default + index)
            };
            let vector = vector.map(|vector| vector.min(vectors.len() - 1));
            let was_created = self.create_pair(
                pair,
                index as u16 + 1,
                with.instance,
                QueueOptions { vector, ..options },
            )?;
            if !was_created {
                break;
            }
            created += 1;
        }
        if created == 0 {
            return Err(EIO);
        }
        let counts = first_of(counts, created);
        let (pairs, missing) = shared.pairs.split_at(created as usize);
        // What the controller had in queues that it does not have any more fails.
        for pair in missing {
            pair.close(Gate::Dead);
        }
        for pair in pairs {
            pair.open();
        }
        self.link.unquiesce();
        if tags.queue_counts() != counts {
            // This waits for requests. Those that time out meanwhile fail, as the controller is not
            // live yet.
            dev_info!(dev, "{created} I/O queues now\n");
            tags.set_cpu_maps(counts, cpu_maps(counts, vectors)?)?;
        }
        Ok(None)
    }

    /// Returns how many queues of each kind there are if the controller grants so many. After a
    /// reset there are not more than at first.
    ///
    /// A queue that interrupts does not become one that is polled: the block layer is told of the
    /// change when all requests have ended, and before it does not poll that queue.
    fn limit(&self, wanted: QueueCounts, granted: u32) -> QueueCounts {
        let Some(Made { first, tags, .. }) = &self.made else {
            return divide(wanted, granted);
        };
        let granted = granted.min(first.total().unwrap_or(granted));
        let before = tags.queue_counts();
        let interrupting = before.default.saturating_add(before.read);
        let wanted = QueueCounts {
            default: wanted.default,
            read: if first.read > 0 { wanted.read } else { 0 },
            poll: wanted
                .poll
                .min(first.poll)
                .min(granted.saturating_sub(interrupting)),
        };
        match divide(wanted, granted) {
            // There are fewer vectors now, and polled queues would come in the place of others.
            counts if counts.default + counts.read < interrupting => {
                QueueCounts { poll: 0, ..counts }
            }
            counts => counts,
        }
    }

    /// Creates a queue pair. Returns false if the controller refuses that.
    fn create_pair(
        &self,
        pair: &QueuePair<InFlightIo>,
        id: u16,
        instance: usize,
        options: QueueOptions<'_>,
    ) -> Result<bool> {
        let (submission, completion) = memalloc_noio(|| {
            let name = CString::try_from_fmt(fmt!("{}{instance}q{id}", names::CONTROLLERS))?;
            pair.prepare(&QueueOptions {
                name: &name,
                id,
                ..options
            })
        })?;
        let new = |address| NewQueue {
            id,
            entries: options.entries.into(),
            address,
        };
        // At most the number of vectors of a device.
        let vector = options.vector.map(|vector| vector as u16);
        for command in [
            AdminCommand::CreateCompletionQueue(new(completion), vector),
            AdminCommand::CreateSubmissionQueue(new(submission)),
        ] {
            let (answer, _) = self.admin.execute(command, None)?;
            if !answer.status().is_success() {
                let code = answer.status().code();
                dev_err!(
                    options.dev,
                    "queue {id} was not created: status {code:#x}\n"
                );
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the number of entries of an I/O queue: 2 to 4095.
    pub(crate) fn entries(&self) -> u16 {
        let most = self.link.registers.queue_entries();
        most.min(params::queue_entries().into()) as u16
    }

    /// Makes the queues, if they are not made yet.
    fn make(&mut self, with: For<'_>, counts: QueueCounts) -> Result<Made> {
        if let Some(made) = &self.made {
            return Ok(made.clone());
        }
        let dev = with.dev;
        let (count, depth) = (counts.total().ok_or(EINVAL)?, self.entries() - 1);
        let queues = count as usize;
        let mut pairs = KVec::with_capacity(queues, GFP_KERNEL)?;
        for _ in 0..count {
            let pair = QueuePair::new()?;
            self.link.add(pair.clone())?;
            pairs.push_within_capacity(pair)?;
        }
        let shared = Arc::new(
            Shared {
                link: self.link.clone(),
                admin: self.admin.clone(),
                ioctls: self.ioctls.clone(),
                pairs,
                pools: Pools::new(
                    dev.as_ref(),
                    (queues * SHORT_LISTS).min(MOST_LISTS),
                    (queues * LIST_PAGES).min(MOST_LISTS),
                )?,
                has_sgl: Atomic::new(false),
                retry_delays: [const { Atomic::new(0) }; 3],
            },
            GFP_KERNEL,
        )?;
        let options = TagSetOptions {
            queues: counts,
            depth: depth.into(),
            timeout: Some(params::io_timeout()),
            ..TagSetOptions::default()
        };
        let maps = cpu_maps(counts, with.vectors)?;
        let tags = TagSet::with_cpu_maps(options, maps, Ok(shared.clone()))?;
        self.link.set_dispatch(Some(IoDispatch::new(tags.clone())?));
        let made = Made {
            tags,
            shared,
            first: counts,
        };
        Ok(self.made.insert(made).clone())
    }

    /// Deletes the queues, as the specification asks for before a shutdown. A controller that needs
    /// longer for that than `limit` is shut down nevertheless.
    pub(crate) fn delete(&self, limit: Delta) {
        let begin = Instant::<Monotonic>::now();
        let Some(made) = &self.made else {
            return;
        };
        // Not more than 16 bits can count.
        let count = made.tags.queue_counts().total().unwrap_or(0) as u16;
        for queue in 1..=count {
            for command in [
                AdminCommand::DeleteSubmissionQueue(queue),
                AdminCommand::DeleteCompletionQueue(queue),
            ] {
                if begin.elapsed() > limit || self.admin.execute(command, None).is_err() {
                    return;
                }
            }
        }
    }
}

impl Drop for IoQueues {
    fn drop(&mut self) {
        // What it stops owns the controller in turn.
        self.link.set_dispatch(None);
    }
}
