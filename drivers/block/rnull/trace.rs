// SPDX-License-Identifier: GPL-2.0

//! The tracepoints, which `rnull_events.h` defines.

use crate::names;
use kernel::block::{
    mq::{
        Operations,
        Request, //
    },
    zone::{
        ZoneCondition,
        ZoneReporter, //
    },
    BlkResult, //
};

names::tracepoints! {
    /// A request was started. Every request that is started is completed later.
    pub(crate) fn rq_issue(rq: &Request<impl Operations>) => (rq);

    /// A request is about to be ended with this result.
    pub(crate) fn rq_complete(rq: &Request<impl Operations>, result: BlkResult) => (rq, result);

    /// A request is about to write to a zone in this condition, or has opened, closed, finished or
    /// reset a zone, which now has this condition.
    #[cfg(CONFIG_BLK_DEV_ZONED)]
    pub(crate) fn zone_op(rq: &Request<impl Operations>, zone: u32, condition: ZoneCondition)
        => (rq, zone, condition);

    /// Zones are about to be reported.
    #[cfg(CONFIG_BLK_DEV_ZONED)]
    pub(crate) fn report_zones(reporter: &ZoneReporter<'_>) => (reporter, reporter.remaining());
}
