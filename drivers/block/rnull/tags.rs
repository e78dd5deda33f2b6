// SPDX-License-Identifier: GPL-2.0

//! The tag sets of disks.

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

/// The request timeout.
const TIMEOUT: Delta = Delta::from_secs(5);

/// The tag set of all disks with `shared_tags`.
///
/// It is made for the first of these disks, and kept until the module is unloaded. Only the module
/// parameters decide about its size. It is blocking, since any disk may use it.
#[pin_data]
pub(crate) struct SharedTags {
    parameters: Config,
    #[pin]
    tags: Mutex<Option<Arc<TagSet<Null<Blocking>>>>>,
}

impl SharedTags {
    /// Makes no tag set yet.
    pub(crate) fn new(parameters: Config) -> impl PinInit<Self> {
        pin_init!(Self {
            parameters,
            tags <- new_mutex!(None, "SharedTags::tags"),
        })
    }

    /// Returns the tag set, which is made if there is none yet.
    pub(crate) fn get(&self) -> Result<Arc<TagSet<Null<Blocking>>>> {
        let mut tags = self.tags.lock();
        if let Some(tags) = &*tags {
            return Ok(tags.clone());
        }
        let limits = system_limits::detect(self.parameters.poll_queues);
        let made = make(&self.parameters, self.parameters.node(&limits))?;
        Ok(tags.insert(made).clone())
    }
}

/// Makes a tag set for one disk.
pub(crate) fn own<C: Context>(plan: &ValidatedConfig) -> Result<Arc<TagSet<Null<C>>>> {
    make(&plan.settings, plan.node)
}

fn make<C: Context>(settings: &Config, node: Option<u32>) -> Result<Arc<TagSet<Null<C>>>> {
    let options = TagSetOptions {
        queues: counts(settings),
        depth: settings.hw_queue_depth,
        reserved_tags: 0,
        node,
        timeout: Some(TIMEOUT),
        no_sched: settings.no_sched,
        shared_bitmap: settings.shared_tag_bitmap,
    };
    TagSet::new(options, Ok::<(), Error>(()))
}

/// Returns the numbers of hardware queues in `settings`.
pub(crate) fn counts(settings: &Config) -> QueueCounts {
    QueueCounts {
        default: settings.submit_queues,
        read: 0,
        poll: settings.poll_queues,
    }
}
