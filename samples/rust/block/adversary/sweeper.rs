// SPDX-License-Identifier: GPL-2.0

//! A timer that ends, in hard interrupt context, what nothing else ends.

use super::{
    call_site::CallSite,
    requests::{
        self,
        Adversary, //
    },
    shared::Shared, //
};
use kernel::{
    block::mq::IoCompletionBatch,
    impl_has_hr_timer,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::{
        hrtimer::{
            ArcHrTimerHandle,
            HrTimer,
            HrTimerCallback,
            HrTimerCallbackContext,
            HrTimerPointer,
            HrTimerRestart,
            RelativeMode, //
        },
        Delta,
        Monotonic, //
    },
};

/// The period of the timer.
const PERIOD: Delta = Delta::from_millis(4);

/// The mean number of periods until requests end that are kept until they time out.
const TIMEOUT_SWEEPS: u64 = 400;

/// The timer.
#[pin_data]
pub(crate) struct Sweeper<T: Adversary> {
    shared: Arc<Shared<T>>,
    #[pin]
    timer: HrTimer<Self>,
}

impl<T: Adversary> Sweeper<T> {
    /// Starts the timer. Dropping the handle stops it.
    pub(crate) fn start(shared: &Arc<Shared<T>>) -> Result<ArcHrTimerHandle<Self>> {
        let sweeper = Arc::pin_init(
            pin_init!(Self {
                shared: shared.clone(),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )?;
        Ok(HrTimerPointer::start(sweeper, PERIOD))
    }
}

impl<T: Adversary> HrTimerCallback for Sweeper<T> {
    type Pointer<'a> = Arc<Self>;

    fn run(
        this: ArcBorrow<'_, Self>,
        mut context: HrTimerCallbackContext<'_, Self>,
    ) -> HrTimerRestart {
        // This tells lockdep that interrupt handlers take the lock. The `try_lock()` below does
        // not.
        drop(this.shared.outer_irq.lock());
        requests::sweep(
            &this.shared,
            &mut IoCompletionBatch::new(),
            CallSite::Interrupt,
        );
        if this.shared.rng_at(CallSite::Interrupt).one_in(8) {
            // The call site where they should end may not be reached.
            drop(this.shared.take_to_end());
        }
        if this
            .shared
            .rng_at(CallSite::Interrupt)
            .one_in(TIMEOUT_SWEEPS)
        {
            let requests = this.shared.take_until_timeout();
            let batch = &mut IoCompletionBatch::new();
            requests::finish(&this.shared, requests, batch, CallSite::Interrupt);
        }
        context.forward_now(PERIOD);
        HrTimerRestart::Restart
    }
}

impl_has_hr_timer! {
    impl{T: Adversary} HasHrTimer<Self> for Sweeper<T> {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}
