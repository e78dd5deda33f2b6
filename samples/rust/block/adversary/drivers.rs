// SPDX-License-Identifier: GPL-2.0

//! The drivers, which differ in the operations that they implement.

use super::{
    call_site::CallSite,
    data::{
        DiskData,
        HwData,
        Pdu,
        SetData, //
    },
    requests,
    variant::Variant,
    zones, //
};
use kernel::{
    block::{
        mq::{
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
        zone::ZoneReporter, //
    },
    prelude::*,
    sync::Arc,
    time::Delta, //
};

/// Declares a driver with the data of this module and some optional operations.
macro_rules! driver {
    ($(#[doc = $doc:literal])* $name:ident: $context:ty, $timer:ty { $($operation:item)* }) => {
        $(#[doc = $doc])*
        pub(crate) enum $name {}

        #[vtable]
        impl Operations for $name {
            type Context = $context;
            type TagSetData = SetData<Self>;
            type QueueData = DiskData<Self>;
            type HwData = HwData<Self>;
            type RequestData = Pdu<Self>;
            type Timer = $timer;

            fn init_hw_queue(
                _: &DiskData<Self>,
                set: &SetData<Self>,
                _: u32,
            ) -> impl PinInit<HwData<Self>, Error> {
                requests::init_hw_queue(set)
            }

            fn init_request(set: &SetData<Self>) -> impl PinInit<Pdu<Self>> {
                requests::init_request(set)
            }

            fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
                requests::queue_rq(rq, CallSite::QueueRq)
            }

            $($operation)*
        }
    };
}

driver! {
    /// A driver without optional operations.
    Bare: mq::NonBlocking, NoTimer {}
}

driver! {
    /// A nonblocking driver with all operations.
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

        fn report_zones(disk: &DiskData<Self>, reporter: &mut ZoneReporter<'_>) -> Result {
            zones::report_zones(disk, reporter)
        }
    }
}

driver! {
    /// A blocking driver with all operations.
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

        fn report_zones(disk: &DiskData<Self>, reporter: &mut ZoneReporter<'_>) -> Result {
            zones::report_zones(disk, reporter)
        }
    }
}

driver! {
    /// A driver whose requests end when they are polled for, or time out.
    Polled: mq::NonBlocking, NoTimer {
        fn poll<'q>(hw: HwQueue<'q, Self>, batch: &mut IoCompletionBatch<'_, Self>) -> u32 {
            requests::poll(hw, batch)
        }

        fn timeout<'t>(rq: TimedOutRequest<'t, Self>) -> TimeoutAction<'t> {
            requests::timeout(rq)
        }
    }
}

impl Variant for Bare {
    const NAME: &'static str = "bare";

    type Delay = ();

    fn orphan_data() -> DiskData<Self> {
        DiskData { shared: None }
    }

    fn delay_queue(_: Delta) -> Result {
        Ok(())
    }

    fn push_delayed((): &(), rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn wait(rq: StartedRequest<Self>, _: Delta) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn raise_completion(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn pause(queues: RequestQueue<'_, Self>, _: Delta) {
        queues.stop();
        queues.start();
    }
}

impl Variant for Polled {
    const NAME: &'static str = "polled";

    type Delay = ();

    fn orphan_data() -> DiskData<Self> {
        DiskData { shared: None }
    }

    fn delay_queue(_: Delta) -> Result {
        Ok(())
    }

    fn push_delayed((): &(), rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn wait(rq: StartedRequest<Self>, _: Delta) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn leave_in_flight(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        rq.leave_in_flight();
        Ok(())
    }

    fn raise_completion(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
        Err(rq)
    }

    fn pause(queues: RequestQueue<'_, Self>, _: Delta) {
        queues.stop();
        queues.start();
    }
}

/// Implements [`Variant`] for a driver with all operations.
macro_rules! with_all {
    ($name:ident, $text:literal) => {
        impl Variant for $name {
            const NAME: &'static str = $text;

            type Delay = Arc<DelayQueue<Self>>;

            fn orphan_data() -> DiskData<Self> {
                DiskData { shared: None }
            }

            fn delay_queue(delay: Delta) -> Result<Self::Delay> {
                Ok(Arc::new(DelayQueue::new(delay)?, GFP_KERNEL)?)
            }

            fn push_delayed(
                delay_queue: &Self::Delay,
                rq: StartedRequest<Self>,
            ) -> Result<(), StartedRequest<Self>> {
                let mut requests = RequestList::new();
                requests.push_back(rq);
                delay_queue.push(&mut requests);
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

            fn raise_completion(rq: StartedRequest<Self>) -> Result<(), StartedRequest<Self>> {
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
