// SPDX-License-Identifier: GPL-2.0

//! The tags of a disk.

use crate::{
    config::{
        Config,
        ValidatedConfig, //
    },
    queue::Null, //
    system_limits,
};
use kernel::{
    block::mq::{
        Blocking,
        Context,
        QueueCounts,
        TagSet,
        TagSetOptions, //
    },
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Delta, //
};

/// How long a request may take before the block layer asks after it.
const TIMEOUT: Delta = Delta::from_secs(5);

/// The tags of all disks that share theirs.
///
/// They are made with the first of these disks, and stay. The module parameters alone say how many
/// there are. Any disk may come to use them, so they let requests sleep.
#[pin_data]
pub(crate) struct SharedTags {
    parameters: Config,
    #[pin]
    tags: Mutex<Option<Arc<TagSet<Null<Blocking>>>>>,
}

impl SharedTags {
    /// Remembers what to make.
    pub(crate) fn new(parameters: Config) -> impl PinInit<Self> {
        pin_init!(Self {
            parameters,
            tags <- new_mutex!(None, "SharedTags::tags"),
        })
    }

    /// Returns the tags, which are made if there are none yet.
    pub(crate) fn get(&self) -> Result<Arc<TagSet<Null<Blocking>>>> {
        let mut tags = self.tags.lock();
        if let Some(tags) = &*tags {
            return Ok(tags.clone());
        }
        let machine = system_limits::detect(self.parameters.poll_queues);
        let made = make(&self.parameters, self.parameters.node(&machine))?;
        Ok(tags.insert(made).clone())
    }
}

/// Makes the tags that `plan` asks for.
pub(crate) fn own<C: Context>(plan: &ValidatedConfig) -> Result<Arc<TagSet<Null<C>>>> {
    make(&plan.settings, plan.node)
}

fn make<C: Context>(settings: &Config, node: Option<u32>) -> Result<Arc<TagSet<Null<C>>>> {
    let options = TagSetOptions {
        queues: counts(settings),
        depth: settings.hw_queue_depth,
        node,
        timeout: Some(TIMEOUT),
        no_sched: settings.no_sched,
        shared_bitmap: settings.shared_tag_bitmap,
    };
    TagSet::new(options, Ok::<(), Error>(()))
}

/// Returns the hardware queues that `settings` ask for.
pub(crate) fn counts(settings: &Config) -> QueueCounts {
    QueueCounts {
        default: settings.submit_queues,
        read: 0,
        poll: settings.poll_queues,
    }
}
