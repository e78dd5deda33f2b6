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

/// What the timer sweeps.
pub(crate) trait Sweep: Send + Sync + 'static {
    /// Ends what nothing else ends, in hard interrupt context.
    fn sweep(&self);
}

/// The timer.
#[pin_data]
pub(crate) struct Sweeper<S: Sweep> {
    swept: Arc<S>,
    #[pin]
    timer: HrTimer<Self>,
}

impl<S: Sweep> Sweeper<S> {
    /// Starts the timer. Dropping the handle stops it.
    pub(crate) fn start(swept: &Arc<S>) -> Result<ArcHrTimerHandle<Self>> {
        let sweeper = Arc::pin_init(
            pin_init!(Self {
                swept: swept.clone(),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )?;
        Ok(HrTimerPointer::start(sweeper, PERIOD))
    }
}

impl<S: Sweep> HrTimerCallback for Sweeper<S> {
    type Pointer<'a> = Arc<Self>;

    fn run(
        this: ArcBorrow<'_, Self>,
        mut context: HrTimerCallbackContext<'_, Self>,
    ) -> HrTimerRestart {
        this.swept.sweep();
        context.forward_now(PERIOD);
        HrTimerRestart::Restart
    }
}

impl<T: Adversary> Sweep for Shared<T> {
    fn sweep(&self) {
        // This tells lockdep that interrupt handlers take the lock. The `try_lock()` below does
        // not.
        drop(self.outer_irq.lock());
        requests::sweep(self, &mut IoCompletionBatch::new(), CallSite::Interrupt);
        if self.rng_at(CallSite::Interrupt).one_in(8) {
            // The call site where they should end may not be reached.
            drop(self.take_to_end());
        }
        if self.rng_at(CallSite::Interrupt).one_in(TIMEOUT_SWEEPS) {
            let requests = self.take_until_timeout();
            let batch = &mut IoCompletionBatch::new();
            requests::finish(self, requests, batch, CallSite::Interrupt);
        }
    }
}

impl_has_hr_timer! {
    impl{S: Sweep} HasHrTimer<Self> for Sweeper<S> {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}
