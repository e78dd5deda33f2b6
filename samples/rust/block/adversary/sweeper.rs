// SPDX-License-Identifier: GPL-2.0

//! A timer that ends, in hard interrupt context, what nothing else ends.

use super::{
    place::Place,
    requests::{
        self,
        Adversary, //
    },
    world::World, //
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

/// How often it looks.
const PERIOD: Delta = Delta::from_millis(4);

/// How often it looks before it ends what is kept until it times out, which takes about a second.
const HOARD: u64 = 400;

/// The timer.
#[pin_data]
pub(crate) struct Sweeper<T: Adversary> {
    world: Arc<World<T>>,
    #[pin]
    timer: HrTimer<Self>,
}

impl<T: Adversary> Sweeper<T> {
    /// Starts it; it stops when the handle is dropped.
    pub(crate) fn start(world: &Arc<World<T>>) -> Result<ArcHrTimerHandle<Self>> {
        let sweeper = Arc::pin_init(
            pin_init!(Self {
                world: world.clone(),
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
        // Tells lockdep that interrupt handlers take it: `try_lock`, as below, does not.
        drop(this.world.outer_irq.lock());
        requests::sweep(&this.world, &mut IoCompletionBatch::new(), Place::Interrupt);
        if this.world.occasion(Place::Interrupt).one_in(8) {
            // The place where they should end may not be reached.
            drop(this.world.any_doomed());
        }
        if this.world.occasion(Place::Interrupt).one_in(HOARD) {
            let requests = this.world.take_hoard();
            let batch = &mut IoCompletionBatch::new();
            requests::settle(&this.world, requests, batch, Place::Interrupt);
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
