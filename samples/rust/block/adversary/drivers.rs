// SPDX-License-Identifier: GPL-2.0

//! The drivers: one for each set of operations in which a mistake would show.

use super::{
    data::{
        Command,
        Disk,
        Hw,
        Set, //
    },
    kind::Kind,
    place::Place,
    requests, //
};
use kernel::{
    block::mq::{
        self,
        Blocking,
        CompletingRequest,
        DelayQueue,
        HwQueue,
        IdleRequest,
        IoCompletionBatch,
        NoTimer,
        Operations,
        PlugList,
        QueueResult,
        RequestList,
        RequestQueue,
        StartedRequest,
        TimedOutRequest,
        TimeoutAction,
        Timer, //
    },
    prelude::*,
    sync::Arc,
    time::Delta, //
};

/// Declares a driver, whose data is that of this module, with some more operations.
macro_rules! driver {
    ($(#[doc = $doc:literal])* $name:ident: $context:ty, $timer:ty { $($operation:item)* }) => {
        $(#[doc = $doc])*
        pub(crate) enum $name {}

        #[vtable]
        impl Operations for $name {
            type Context = $context;
            type TagSetData = Set<Self>;
            type QueueData = Disk<Self>;
            type HwData = Hw<Self>;
            type RequestData = Command<Self>;
            type Timer = $timer;

            fn init_hw_queue(
                _: &Disk<Self>,
                set: &Set<Self>,
                _: u32,
            ) -> impl PinInit<Hw<Self>, Error> {
                requests::init_hw_queue(set)
            }

            fn init_request(set: &Set<Self>) -> impl PinInit<Command<Self>> {
                requests::init_request(set)
            }

            fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
                requests::queue_rq(rq, Place::QueueRq)
            }

            $($operation)*
        }
    };
}

driver! {
    /// All that is optional is missing.
    Bare: mq::NonBlocking, NoTimer {}
}

driver! {
    /// All there is, where nothing may sleep.
    Full: mq::NonBlocking, Timer {
        fn queue_rqs<'q>(rqs: &mut PlugList<'q, Self>) {
            requests::queue_rqs(rqs)
        }

        fn commit_rqs(hw: HwQueue<'_, Self>) {
            requests::commit_rqs(hw)
        }

        fn complete(rq: CompletingRequest<Self>) {
            requests::complete(rq)
        }

        fn timer_expired(rq: StartedRequest<Self>) {
            requests::timer_expired(rq)
        }

        fn delay_expired(requests: RequestList<Self>) {
            requests::delay_expired(requests)
        }

        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn queue_timer_expired(queues: RequestQueue<'_, Self>) {
            requests::queue_timer_expired(queues)
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            requests::timeout(rq)
        }
    }
}

driver! {
    /// All there is, where `queue_rq` may sleep.
    Sleepy: Blocking, Timer {
        fn queue_rqs<'q>(rqs: &mut PlugList<'q, Self>) {
            requests::queue_rqs(rqs)
        }

        fn commit_rqs(hw: HwQueue<'_, Self>) {
            requests::commit_rqs(hw)
        }

        fn complete(rq: CompletingRequest<Self>) {
            requests::complete(rq)
        }

        fn timer_expired(rq: StartedRequest<Self>) {
            requests::timer_expired(rq)
        }

        fn delay_expired(requests: RequestList<Self>) {
            requests::delay_expired(requests)
        }

        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn queue_timer_expired(queues: RequestQueue<'_, Self>) {
            requests::queue_timer_expired(queues)
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            requests::timeout(rq)
        }
    }
}

driver! {
    /// Requests end when they are polled for, or time out.
    Polled: mq::NonBlocking, NoTimer {
        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            requests::timeout(rq)
        }
    }
}

impl Kind for Bare {
    const NAME: &'static str = "bare";

    type Line = ();

    fn orphan() -> Disk<Self> {
        Disk { world: None }
    }

    fn line(_: Delta) -> Result {
        Ok(())
    }

    fn wait_in(_: &(), rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn wait(rq: StartedRequest<Self>, _: Delta) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn hand_over(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn pause(queues: RequestQueue<'_, Self>, _: Delta) {
        queues.stop();
        queues.start();
    }
}

impl Kind for Polled {
    const NAME: &'static str = "polled";

    type Line = ();

    fn orphan() -> Disk<Self> {
        Disk { world: None }
    }

    fn line(_: Delta) -> Result {
        Ok(())
    }

    fn wait_in(_: &(), rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn wait(rq: StartedRequest<Self>, _: Delta) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        rq.leave_in_flight();
        Ok(())
    }

    fn hand_over(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn pause(queues: RequestQueue<'_, Self>, _: Delta) {
        queues.stop();
        queues.start();
    }
}

/// Declares how the drivers that have it all use it.
macro_rules! with_all {
    ($name:ident, $text:literal) => {
        impl Kind for $name {
            const NAME: &'static str = $text;

            type Line = Arc<DelayQueue<Self>>;

            fn orphan() -> Disk<Self> {
                Disk { world: None }
            }

            fn line(delay: Delta) -> Result<Self::Line> {
                Ok(Arc::new(DelayQueue::new(delay)?, GFP_KERNEL)?)
            }

            fn wait_in(
                line: &Self::Line,
                rq: StartedRequest<Self>,
            ) -> Result<(), StartedRequest<Self>> {
                let mut requests = RequestList::new();
                requests.push_back(rq);
                line.push(&mut requests);
                Ok(())
            }

            fn wait(rq: StartedRequest<Self>, delay: Delta) -> Result<(), StartedRequest<Self>> {
                rq.delay(delay);
                Ok(())
            }

            fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
                rq.leave_in_flight();
                Ok(())
            }

            fn hand_over(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
                rq.complete();
                Ok(())
            }

            fn pause(queues: RequestQueue<'_, Self>, delay: Delta) {
                queues.stop();
                queues.start_timer(delay);
            }
        }
    };
}

with_all!(Full, "full");
with_all!(Sleepy, "sleepy");
