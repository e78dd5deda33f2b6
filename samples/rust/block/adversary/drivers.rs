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
        Batch,
        Completing,
        DelayLine,
        HwQueue,
        Idle,
        NoTimer,
        Operations,
        PlugList,
        Queues,
        Refused,
        RequestList,
        Sleepable,
        Started,
        TimedOut,
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

            fn queue_rq<'q>(rq: Idle<'q, Self>, _: bool) -> Result<(), Refused<'q, Self>> {
                requests::queue_rq(rq, Place::QueueRq)
            }

            $($operation)*
        }
    };
}

driver! {
    /// All that is optional is missing.
    Bare: mq::Atomic, NoTimer {}
}

driver! {
    /// All there is, where nothing may sleep.
    Full: mq::Atomic, Timer {
        fn queue_rqs<'q>(rqs: &mut PlugList<'q, Self>) {
            requests::queue_rqs(rqs)
        }

        fn commit_rqs(hw: HwQueue<'_, Self>) {
            requests::commit_rqs(hw)
        }

        fn complete(rq: Completing<Self>) {
            requests::complete(rq)
        }

        fn expired(rq: Started<Self>) {
            requests::expired(rq)
        }

        fn due(requests: RequestList<Self>) {
            requests::due(requests)
        }

        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut Batch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn tick(queues: Queues<'_, Self>) {
            requests::tick(queues)
        }

        fn timeout<'t>(rq: TimedOut<'t, Self>) -> TimeoutAction<'t> {
            requests::timeout(rq)
        }
    }
}

driver! {
    /// All there is, where `queue_rq` may sleep.
    Sleepy: Sleepable, Timer {
        fn queue_rqs<'q>(rqs: &mut PlugList<'q, Self>) {
            requests::queue_rqs(rqs)
        }

        fn commit_rqs(hw: HwQueue<'_, Self>) {
            requests::commit_rqs(hw)
        }

        fn complete(rq: Completing<Self>) {
            requests::complete(rq)
        }

        fn expired(rq: Started<Self>) {
            requests::expired(rq)
        }

        fn due(requests: RequestList<Self>) {
            requests::due(requests)
        }

        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut Batch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn tick(queues: Queues<'_, Self>) {
            requests::tick(queues)
        }

        fn timeout<'t>(rq: TimedOut<'t, Self>) -> TimeoutAction<'t> {
            requests::timeout(rq)
        }
    }
}

driver! {
    /// Requests end when they are polled for, or time out.
    Polled: mq::Atomic, NoTimer {
        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut Batch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn timeout<'t>(rq: TimedOut<'t, Self>) -> TimeoutAction<'t> {
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

    fn wait_in(_: &(), rq: Started<Self>) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn wait(rq: Started<Self>, _: Delta) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn park(rq: Started<Self>) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn hand_over(rq: Started<Self>) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn pause(queues: Queues<'_, Self>, _: Delta) {
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

    fn wait_in(_: &(), rq: Started<Self>) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn wait(rq: Started<Self>, _: Delta) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn park(rq: Started<Self>) -> Result<(), Started<Self>> {
        rq.park();
        Ok(())
    }

    fn hand_over(rq: Started<Self>) -> Result<(), Started<Self>> {
        Err(rq)
    }

    fn pause(queues: Queues<'_, Self>, _: Delta) {
        queues.stop();
        queues.start();
    }
}

/// Declares how the drivers that have it all use it.
macro_rules! with_all {
    ($name:ident, $text:literal) => {
        impl Kind for $name {
            const NAME: &'static str = $text;

            type Line = Arc<DelayLine<Self>>;

            fn orphan() -> Disk<Self> {
                Disk { world: None }
            }

            fn line(delay: Delta) -> Result<Self::Line> {
                Ok(Arc::new(DelayLine::new(delay)?, GFP_KERNEL)?)
            }

            fn wait_in(line: &Self::Line, rq: Started<Self>) -> Result<(), Started<Self>> {
                let mut requests = RequestList::new();
                requests.push_back(rq);
                line.push(&mut requests);
                Ok(())
            }

            fn wait(rq: Started<Self>, delay: Delta) -> Result<(), Started<Self>> {
                rq.delay(delay);
                Ok(())
            }

            fn park(rq: Started<Self>) -> Result<(), Started<Self>> {
                rq.park();
                Ok(())
            }

            fn hand_over(rq: Started<Self>) -> Result<(), Started<Self>> {
                rq.complete();
                Ok(())
            }

            fn pause(queues: Queues<'_, Self>, delay: Delta) {
                queues.stop();
                queues.tick_after(delay);
            }
        }
    };
}

with_all!(Full, "full");
with_all!(Sleepy, "sleepy");
