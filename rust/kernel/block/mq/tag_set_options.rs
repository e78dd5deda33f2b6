// SPDX-License-Identifier: GPL-2.0

//! What is asked of a tag set.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    request::cmd_size,
    tag_set_inner::TagSetInner,
    vtable::Vtable,
    Context,
    Operations,
    QueueCounts, //
};
use crate::{
    bindings,
    prelude::*,
    time::{
        msecs_to_jiffies,
        Delta,
        Jiffies, //
    },
};

/// How to make a [`TagSet`](super::TagSet).
///
/// # Examples
///
/// ```
/// use kernel::{block::mq::{QueueCounts, TagSetOptions}, time::Delta};
///
/// let options = TagSetOptions {
///     queues: QueueCounts { default: 4, ..QueueCounts::default() },
///     timeout: Some(Delta::from_secs(5)),
///     ..TagSetOptions::default()
/// };
/// assert_eq!(options.depth, 64);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TagSetOptions {
    /// How many hardware queues each disk has.
    pub queues: QueueCounts,
    /// How many requests each hardware queue has: not zero, and 10240 at most, to which more is
    /// reduced.
    pub depth: u32,
    /// The memory node to allocate from, which must be on line, or any.
    pub node: Option<u32>,
    /// How long a request may take before [`Operations::timeout`] is asked, in steps of a
    /// millisecond, or the block layer's choice of 30 seconds.
    pub timeout: Option<Delta>,
    /// No I/O scheduler unless the user asks for one.
    pub no_sched: bool,
    /// All hardware queues share `depth` requests.
    pub shared_bitmap: bool,
}

impl Default for TagSetOptions {
    fn default() -> Self {
        Self {
            queues: QueueCounts::default(),
            depth: 64,
            node: None,
            timeout: None,
            no_sched: false,
            shared_bitmap: false,
        }
    }
}

impl TagSetOptions {
    /// The tag set to hand to C, with the counts validated already.
    pub(super) fn as_raw<T: Operations>(
        &self,
        counts: QueueCounts,
        shared: *const TagSetInner<T>,
    ) -> Result<bindings::blk_mq_tag_set> {
        Ok(bindings::blk_mq_tag_set {
            ops: Vtable::<T>::get(),
            nr_maps: counts.maps(),
            nr_hw_queues: counts.total().ok_or(EINVAL)?,
            queue_depth: self.depth,
            cmd_size: cmd_size::<T>(),
            numa_node: self.node()?,
            timeout: self.jiffies(),
            flags: self.flags::<T>(),
            driver_data: shared.cast_mut().cast(),
            ..pin_init::zeroed()
        })
    }

    fn node(&self) -> Result<c_int> {
        match self.node {
            None => Ok(bindings::NUMA_NO_NODE),
            // SAFETY: The helper takes any number.
            Some(node) if unsafe { bindings::blk_node_online(node) } => {
                Ok(node.try_into().map_err(|_| EINVAL)?)
            }
            Some(_) => Err(EINVAL),
        }
    }

    /// The timeout in jiffies, at least one; zero for the block layer's choice.
    fn jiffies(&self) -> c_uint {
        const LONGEST: Jiffies = i32::MAX as Jiffies;
        self.timeout.map_or(0, |timeout| {
            let milliseconds = timeout.as_millis().clamp(1, i64::from(i32::MAX)) as u32;
            msecs_to_jiffies(milliseconds).clamp(1, LONGEST) as c_uint
        })
    }

    fn flags<T: Operations>(&self) -> c_uint {
        let bit = |set: bool, flag: c_uint| if set { flag } else { 0 };
        bit(T::Context::MAY_SLEEP, bindings::BLK_MQ_F_BLOCKING)
            | bit(self.no_sched, bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT)
            | bit(self.shared_bitmap, bindings::BLK_MQ_F_TAG_HCTX_SHARED)
    }
}
