// SPDX-License-Identifier: GPL-2.0

//! The events of a controller, which a worker handles.
//!
//! The controller has one command without a request, which it completes when there is an event. It
//! gets the command again a while later, so a controller with many events is slowed down.

use super::{
    admin::{
        Admin,
        AdminQueue, //
    },
    alarm::Reason,
    command::{
        event_request,
        AdminCommand, //
    },
    completion_queue::EventSink,
    event::{
        Event,
        EventKind, //
    },
    link::{
        Link,
        State, //
    },
    namespaces::Namespaces,
    queue_entry::Completion, //
};
use kernel::{
    block::mq::{
        memalloc_noio,
        TagSet, //
    },
    impl_has_delayed_work,
    new_delayed_work,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        rcu,
        Arc,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        self,
        DelayedWork,
        WorkItem, //
    }, //
};

/// The identifier of the command. No request has that tag.
const CID: u16 = super::admin::ENTRIES - 1;

/// How long to wait after an event, in milliseconds: there are at most ten each second.
const PAUSE: u32 = 100;

/// The controller does not have the command.
const IDLE: u32 = 0;
/// The controller has the command.
const SENT: u32 = 1;
/// The command has completed: there is an event.
const ARRIVED: u32 = 2;

/// The events of a controller.
#[pin_data]
pub(crate) struct Events {
    /// [`IDLE`], [`SENT`] or [`ARRIVED`].
    state: Atomic<u32>,
    /// The result of the command in the state [`ARRIVED`].
    result: Atomic<u32>,
    link: Arc<Link>,
    #[pin]
    namespaces: Mutex<Option<Arc<Namespaces>>>,
    #[pin]
    work: DelayedWork<Self>,
    admin: Arc<AdminQueue>,
    /// Last: it keeps the module in memory, whose code drops the rest, also in the worker.
    _tags: Arc<TagSet<Admin>>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Events { self.work }
}

impl WorkItem for Events {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let Some(event) = this.take() else {
            return this.ask();
        };
        if this.link.state() == State::Live {
            this.handle(event);
        }
        // If it is queued already, there is another event.
        let _ = workqueue::system_long().enqueue_delayed(this, msecs_to_jiffies(PAUSE));
    }
}

/// Where the interrupt handler leaves an event.
pub(crate) struct Sink(pub(crate) Arc<Events>);

impl EventSink for Sink {
    fn complete(&self, completion: Completion) -> bool {
        let events = &self.0;
        if completion.cid() != CID || events.state.load(Relaxed) != SENT {
            return false;
        }
        if !completion.status().is_success() {
            // It would fail again. So there are no events before the controller is reset.
            events.state.store(IDLE, Relaxed);
            return true;
        }
        events.result.store(completion.result(), Relaxed);
        events.state.store(ARRIVED, Release);
        let _ = workqueue::system_long().enqueue(events.clone());
        true
    }
}

impl Events {
    pub(crate) fn new(link: Arc<Link>, admin: Arc<AdminQueue>) -> Result<Arc<Self>> {
        let tags = admin.tags().clone();
        Arc::pin_init(
            pin_init!(Self {
                state: Atomic::new(IDLE),
                result: Atomic::new(0),
                link,
                namespaces <- new_mutex!(None),
                work <- new_delayed_work!("Events::work"),
                admin,
                _tags: tags,
            }),
            GFP_KERNEL,
        )
    }

    /// Says which namespaces are looked for when they have changed.
    pub(crate) fn set_namespaces(&self, namespaces: Option<Arc<Namespaces>>) {
        let old = core::mem::replace(&mut *self.namespaces.lock(), namespaces);
        drop(old);
    }

    /// Asks the controller for the next event, if it is not asked already.
    pub(crate) fn ask(&self) {
        let guard = rcu::read_lock();
        // Under the lock of the queue, so that this is not done for the queue of before a reset.
        self.admin.pair().submit_without_request(&guard, || {
            let is_idle = self.state.cmpxchg(IDLE, SENT, Full).is_ok();
            is_idle.then(|| event_request(CID))
        });
    }

    /// Forgets that the controller was asked, which was stopped.
    pub(crate) fn forget(&self) {
        self.state.store(IDLE, Relaxed);
    }

    /// Takes the event that has arrived, if there is one.
    fn take(&self) -> Option<Event> {
        if self.state.load(Acquire) != ARRIVED {
            return None;
        }
        let result = self.result.load(Relaxed);
        self.state
            .cmpxchg(ARRIVED, IDLE, Full)
            .is_ok()
            .then(|| Event::parse(result))
    }

    fn handle(&self, event: Event) {
        if self.link.may_log() {
            let dev = self.link.registers.device();
            match (event.kind, format_args!("event: {}", event.kind)) {
                (EventKind::NamespacesChanged, text) => dev_info!(dev, "{text}\n"),
                (EventKind::FirmwareActivation, text) => dev_warn!(dev, "{text}\n"),
                (_, text) => dev_warn!(dev, "{text}, log page {:#x}\n", event.log_page),
            }
        }
        if let Some(bytes) = event.kind.clear_by_reading() {
            // If this fails, there may be no other event of that kind.
            if let Err(error) = self.read_log(event.log_page, bytes) {
                if self.link.may_log() {
                    dev_err!(
                        self.link.registers.device(),
                        "log page {:#x} was not read: {error:?}\n",
                        event.log_page
                    );
                }
            }
        }
        match event.kind {
            EventKind::NamespacesChanged => {
                if let Some(namespaces) = &*self.namespaces.lock() {
                    namespaces.scan();
                }
            }
            EventKind::PersistentError => self.link.alarm.raise(Reason::PersistentError),
            _ => {}
        }
    }

    fn read_log(&self, page: u8, bytes: u32) -> Result {
        let buffer = memalloc_noio(|| KVVec::from_elem(0u8, bytes as usize, GFP_KERNEL))?;
        let command = AdminCommand::GetLog { page, bytes };
        let (completion, _) = self.admin.execute(command, Some(buffer))?;
        if completion.status().is_success() {
            Ok(())
        } else {
            Err(EIO)
        }
    }
}
