// SPDX-License-Identifier: GPL-2.0

//! What the callbacks of the block layer need of a controller, whether or not its lock is held.

use super::{
    access::Registers,
    alarm::Alarm,
    budget::Budget,
    log_limit::LogLimit,
    queue_pair::{
        Gate,
        Queue, //
    },
    registers::MAX_READY_TIMEOUT, //
};
use kernel::{
    new_mutex,
    pci::bus_master::BusMaster,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Delta, //
};

/// What is being done with a controller.
///
/// ```text
///   Starting --> Live --> Resetting --> Starting
///       |          |          |
///       +----------+----------+--> Dead
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is being enabled by a task that holds the lock of the device.
    Starting,
    /// It serves requests.
    Live,
    /// It is stopped. Requests wait until it is started again.
    Resetting,
    /// It is about to be stopped, or was. It is not started again, and what fails ends.
    Dead,
}

/// The dispatch of the requests of all disks of a controller.
pub(crate) trait Dispatch: Send + Sync {
    /// Has requests wait from now on, also those that are sent again. Waits for the callbacks that
    /// queue requests, but for no request.
    fn quiesce(&self);

    /// Lets all requests go on.
    fn unquiesce(&self);
}

/// A controller.
#[pin_data]
pub(crate) struct Link {
    pub(crate) registers: Registers,
    master: BusMaster,
    pub(crate) alarm: Arc<Alarm>,
    log: LogLimit,
    namespace_log: LogLimit,
    #[pin]
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    /// The queue pairs that the controller may have.
    queues: KVec<Arc<dyn Queue>>,
    /// There while the controller can have disks.
    dispatch: Option<Arc<dyn Dispatch>>,
}

impl Inner {
    fn quiesce(&self) {
        if let Some(dispatch) = &self.dispatch {
            dispatch.quiesce();
        }
    }

    fn unquiesce(&self) {
        if let Some(dispatch) = &self.dispatch {
            dispatch.unquiesce();
        }
    }
}

/// How long a reset may take that a task waits for.
pub(crate) const RESET_LIMIT: Delta = Delta::from_secs(300);

/// How often to look whether it is over.
const RESET_INTERVAL: Delta = Delta::from_millis(10);

/// How often to look whether a controller has done all requests.
const INTERVAL: Delta = Delta::from_millis(2);

impl Link {
    pub(crate) fn new(
        registers: Registers,
        master: BusMaster,
        alarm: Arc<Alarm>,
    ) -> impl PinInit<Self> {
        let inner = Inner {
            state: State::Starting,
            queues: KVec::new(),
            dispatch: None,
        };
        pin_init!(Self {
            registers,
            master,
            alarm,
            log: LogLimit::new(10),
            // All of a controller with as many namespaces, when they are found.
            namespace_log: LogLimit::new(64),
            inner <- new_mutex!(inner),
        })
    }

    /// Makes a queue pair one that is stopped with the controller.
    pub(crate) fn add(&self, queue: Arc<dyn Queue>) -> Result {
        Ok(self.inner.lock().queues.push(queue, GFP_KERNEL)?)
    }

    /// Sets what stops with the controller, or lets go of it.
    pub(crate) fn set_dispatch(&self, dispatch: Option<Arc<dyn Dispatch>>) {
        let old = core::mem::replace(&mut self.inner.lock().dispatch, dispatch);
        if let Some(old) = old {
            old.unquiesce();
        }
    }

    /// Lets requests go on, after the queue pairs were opened.
    pub(crate) fn unquiesce(&self) {
        self.inner.lock().unquiesce();
    }

    /// Has new requests wait, and gives the controller some time for those that it has.
    pub(crate) fn drain(&self, limit: Delta) {
        self.inner.lock().quiesce();
        // The lock is not held all the time, since a request that times out needs it.
        let is_idle = || self.inner.lock().queues.iter().all(|queue| queue.is_idle());
        let waited = Budget::uninterrupted(limit).wait(
            limit,
            INTERVAL,
            || self.registers.check_alive().map(|()| is_idle()),
            |is_idle| *is_idle,
        );
        if let Err(error) = waited {
            let dev = self.registers.device();
            dev_warn!(dev, "not all requests have ended: {error:?}\n");
        }
    }

    /// Returns whether to log a message that a controller can cause again and again.
    pub(crate) fn may_log(&self) -> bool {
        self.allows(&self.log)
    }

    /// The same for a message about a namespace, of which a controller may have many.
    pub(crate) fn may_log_of_namespaces(&self) -> bool {
        self.allows(&self.namespace_log)
    }

    fn allows(&self, limit: &LogLimit) -> bool {
        limit.allows(|suppressed| {
            dev_warn!(
                self.registers.device(),
                "{suppressed} messages were suppressed\n"
            )
        })
    }

    /// Returns the state of the controller.
    pub(crate) fn state(&self) -> State {
        self.inner.lock().state
    }

    /// Changes the state, unless it is [`State::Dead`]. Returns whether it was changed.
    pub(crate) fn change(&self, to: State) -> bool {
        let mut inner = self.inner.lock();
        if inner.state != State::Dead {
            inner.state = to;
        }
        inner.state == to
    }

    /// Ends the use of a controller. From now on, what fails ends.
    ///
    /// Requests that wait for a reset end here.
    pub(crate) fn retire(&self) {
        let mut inner = self.inner.lock();
        let before = inner.state;
        inner.state = State::Dead;
        if before == State::Resetting {
            self.stop(&inner, Gate::Dead);
        }
        for queue in inner.queues.iter().filter(|queue| !queue.is_open()) {
            queue.close(Gate::Dead);
        }
        inner.unquiesce();
    }

    /// Stops the controller, whose commands fail from now on.
    pub(crate) fn fail(&self) {
        let mut inner = self.inner.lock();
        inner.state = State::Dead;
        self.stop(&inner, Gate::Dead);
    }

    /// Stops the controller. Its commands are sent again when it was started anew.
    pub(crate) fn pause(&self) {
        let mut inner = self.inner.lock();
        if inner.state == State::Dead {
            self.stop(&inner, Gate::Dead);
        } else {
            inner.state = State::Resetting;
            self.stop(&inner, Gate::Paused);
        }
    }

    /// Has a command aborted that the controller does not answer in time, or stops the controller,
    /// and has it reset.
    ///
    /// `identify` returns the number of the queue and the identifier of the command, if the
    /// controller still has that: another command may have had it reset meanwhile. `abort` has the
    /// command aborted, and returns false if that is not possible, or has not helped.
    ///
    /// If a task that holds the lock of the device may be waiting for the command, the command
    /// fails instead: a reset would wait for that lock.
    pub(crate) fn timed_out(
        &self,
        identify: impl FnOnce() -> Option<(u16, u16)>,
        abort: impl FnOnce(u16, u16) -> bool,
    ) {
        let mut inner = self.inner.lock();
        let Some((queue, cid)) = identify() else {
            return;
        };
        let is_alive = self.registers.check_alive().is_ok();
        if inner.state == State::Live && is_alive && abort(queue, cid) {
            return;
        }
        let what = match inner.state {
            State::Live => "the controller is reset",
            State::Resetting => "the controller is being reset already",
            State::Starting | State::Dead => "the controller is given up",
        };
        dev_err!(
            self.registers.device(),
            "command {cid:#x} of queue {queue} timed out; {what}\n"
        );
        match inner.state {
            State::Live => {
                inner.state = State::Resetting;
                self.stop(&inner, Gate::Paused);
                self.alarm.request_reset();
            }
            // Its commands were already cancelled.
            State::Resetting => {}
            State::Starting | State::Dead => {
                inner.state = State::Dead;
                self.stop(&inner, Gate::Dead);
            }
        }
    }

    /// Stops the controller, and has it reset, after `first` has succeeded.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is being reset or started already; `ENODEV` if it is not used any more; that
    /// of `first`.
    pub(crate) fn reset(&self, first: impl FnOnce(&Registers) -> Result) -> Result {
        let mut inner = self.inner.lock();
        match inner.state {
            State::Live => {
                first(&self.registers)?;
                inner.state = State::Resetting;
                self.stop(&inner, Gate::Paused);
                self.alarm.request_reset();
                Ok(())
            }
            State::Resetting | State::Starting => Err(EBUSY),
            State::Dead => Err(ENODEV),
        }
    }

    /// Waits until the controller was started or is not used any more, which it returns.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` if the budget is over; `EINTR` if it is killable, and the task is killed.
    pub(crate) fn wait_for_reset(&self, budget: &Budget) -> Result<State> {
        let is_over = |state: &State| matches!(state, State::Live | State::Dead);
        budget.wait(RESET_LIMIT, RESET_INTERVAL, || Ok(self.state()), is_over)
    }

    /// Stops the controller, and cancels its commands.
    fn stop(&self, inner: &Inner, gate: Gate) {
        if gate == Gate::Paused {
            inner.quiesce();
        }
        for queue in inner.queues.iter() {
            queue.close(gate);
        }
        let limit = Delta::from_millis(MAX_READY_TIMEOUT.into());
        match self.registers.disable(&Budget::killable(limit)) {
            Ok(()) | Err(ENODEV) => {}
            Err(error) => {
                let dev = self.registers.device();
                dev_err!(dev, "the controller does not stop: {error:?}\n");
            }
        }
        self.cancel(inner);
        if gate == Gate::Dead {
            inner.unquiesce();
        }
    }

    fn cancel(&self, inner: &Inner) {
        // That the controller says to have stopped is no proof.
        self.master.clear();
        for queue in inner.queues.iter() {
            queue.cancel();
        }
    }

    /// Cancels the commands of a controller that was told of a shutdown. It remains enabled, as to
    /// disable it would end that state.
    pub(crate) fn give_up(&self) {
        let mut inner = self.inner.lock();
        inner.state = State::Dead;
        for queue in inner.queues.iter() {
            queue.close(Gate::Dead);
        }
        self.cancel(&inner);
        inner.unquiesce();
    }

    /// Frees the memory of the queues, and their interrupts, after the controller was stopped.
    pub(crate) fn free(&self) {
        let inner = self.inner.lock();
        let stray: u64 = inner.queues.iter().map(|queue| queue.stray()).sum();
        if stray > 0 {
            let dev = self.registers.device();
            dev_warn!(dev, "{stray} completions had an identifier of no command\n");
        }
        for queue in inner.queues.iter() {
            if let Err(error) = queue.free() {
                let dev = self.registers.device();
                dev_err!(dev, "the memory of a queue was not freed: {error:?}\n");
            }
        }
    }
}
