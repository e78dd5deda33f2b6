// SPDX-License-Identifier: GPL-2.0

//! The tags of a disk.

use crate::{
    config::{
        Config,
        Plan, //
    },
    queue::Null, //
};
use kernel::{
    block::mq::{
        Context,
        QueueCounts,
        TagSet,
        TagSetOptions, //
    },
    prelude::*,
    sync::Arc,
    time::Delta, //
};

/// How long a request may take before the block layer asks after it.
const TIMEOUT: Delta = Delta::from_secs(5);

/// Makes the tag set that `plan` asks for.
pub(crate) fn own<C: Context>(plan: &Plan) -> Result<Arc<TagSet<Null<C>>>> {
    let settings = &plan.settings;
    let options = TagSetOptions {
        queues: counts(settings),
        depth: settings.hw_queue_depth,
        node: plan.node,
        timeout: Some(TIMEOUT),
        no_sched: settings.no_sched,
        ..TagSetOptions::default()
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
