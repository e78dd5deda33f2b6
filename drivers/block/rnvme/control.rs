// SPDX-License-Identifier: GPL-2.0

//! The device of a controller in its class, with its character device `/dev/rnvmeN`.
//!
//! Tasks use these while the controller is reset or removed. They take no lock under which the
//! device is removed: those of the PCI device, and of what the driver has of it.

use super::{
    generic::{
        self,
        caller, //
    },
    identify::controller::Controller,
    ioctl::Target,
    link::{
        Link,
        State, //
    },
    names, //
};
use kernel::{
    device_class::{
        Attribute,
        Class,
        ClassDevice,
        ClassDeviceOptions,
        Operations,
        Parent,
        Registration, //
    },
    fs::File,
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    }, //
};

/// How many minor numbers there are: controllers have at most so many numbers.
const MINORS: u32 = 1024;

static CONTROLLERS: Class = Class::new(names::CONTROLLER_CLASS, MINORS);

static SUBSYSTEMS: Class = Class::new(names::SUBSYSTEM_CLASS, 0);

/// The classes of the driver.
pub(crate) struct Classes {
    _controllers: Registration,
    _subsystems: Registration,
    _namespaces: Registration,
}

impl Classes {
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        let register = |class: &'static Class| {
            Registration::new(class, module).inspect_err(|error| {
                let name = class.name();
                pr_err!("no class {name:?}, which another driver may have: {error:?}\n");
            })
        };
        Ok(Self {
            _controllers: register(&CONTROLLERS)?,
            _subsystems: register(&SUBSYSTEMS)?,
            _namespaces: register(&generic::NAMESPACES)?,
        })
    }
}

/// What does not change while the driver is bound, but for the number of queues.
pub(crate) struct Facts {
    pub(crate) address: CString,
    pub(crate) instance: usize,
    pub(crate) node: i32,
    /// How many queues there are, with that for admin commands.
    pub(crate) queues: Atomic<u32>,
    /// The most entries of an I/O queue.
    pub(crate) entries: u16,
}

/// What tasks can do with a controller, in the class of controllers.
#[pin_data]
pub(crate) struct Control {
    link: Arc<Link>,
    target: Arc<Target>,
    facts: Facts,
    #[pin]
    identity: Mutex<Controller>,
}

impl Control {
    fn state(&self) -> &'static str {
        match self.link.state() {
            State::Starting => "connecting",
            State::Live => "live",
            State::Resetting => "resetting",
            State::Dead => "dead",
        }
    }

    fn kind(&self) -> &'static str {
        match self.identity.lock().kind {
            1 => "io",
            2 => "discovery",
            3 => "admin",
            _ => "reserved",
        }
    }
}

#[vtable]
impl Operations for Control {
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        Attribute::ro(c"address", |this, page| {
            writeln!(page, "{}", this.facts.address.to_str()?)
        }),
        Attribute::ro(c"cntlid", |this, page| {
            writeln!(page, "{}", this.identity.lock().id)
        }),
        Attribute::ro(c"cntrltype", |this, page| writeln!(page, "{}", this.kind())),
        Attribute::ro(c"firmware_rev", |this, page| {
            writeln!(page, "{}", this.identity.lock().firmware)
        }),
        // Controllers on a bus are not kept alive.
        Attribute::ro(c"kato", |_this, page| writeln!(page, "0")),
        Attribute::ro(c"model", |this, page| {
            writeln!(page, "{}", this.identity.lock().model)
        }),
        Attribute::ro(c"numa_node", |this, page| {
            writeln!(page, "{}", this.facts.node)
        }),
        Attribute::ro(c"queue_count", |this, page| {
            writeln!(page, "{}", this.facts.queues.load(Relaxed))
        }),
        Attribute::wo(c"rescan_controller", |this, _text| {
            this.target.rescan();
            Ok(())
        }),
        Attribute::wo(c"reset_controller", |this, _text| this.target.reset()),
        Attribute::ro(c"serial", |this, page| {
            writeln!(page, "{}", this.identity.lock().serial)
        }),
        // As the field of commands has it: less by one.
        Attribute::ro(c"sqsize", |this, page| {
            writeln!(page, "{}", this.facts.entries - 1)
        }),
        Attribute::ro(c"state", |this, page| writeln!(page, "{}", this.state())),
        Attribute::ro(c"subsysnqn", |this, page| {
            writeln!(page, "{}", this.identity.lock().subsystem_name())
        }),
        Attribute::ro(c"transport", |_this, page| writeln!(page, "pcie")),
    ];

    fn ioctl(this: ArcBorrow<'_, Self>, file: &File, cmd: u32, arg: usize) -> Result<isize> {
        let result = this.target.controller_ioctl(caller(file), cmd, arg)?;
        Ok(result as isize)
    }
}

/// What tasks see of a subsystem, to which a controller belongs.
pub(crate) struct Subsystem(Arc<Control>);

#[vtable]
impl Operations for Subsystem {
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        Attribute::ro(c"firmware_rev", |this, page| {
            writeln!(page, "{}", this.0.identity.lock().firmware)
        }),
        Attribute::ro(c"model", |this, page| {
            writeln!(page, "{}", this.0.identity.lock().model)
        }),
        Attribute::ro(c"serial", |this, page| {
            writeln!(page, "{}", this.0.identity.lock().serial)
        }),
        Attribute::ro(c"subsysnqn", |this, page| {
            writeln!(page, "{}", this.0.identity.lock().subsystem_name())
        }),
        Attribute::ro(c"subsystype", |_this, page| writeln!(page, "nvm")),
    ];
}

/// The devices of a controller, which remain until this is dropped.
pub(crate) struct ControlDevices {
    /// First: it links to the other one.
    _subsystem: ClassDevice<Subsystem>,
    controller: ClassDevice<Control>,
}

impl ControlDevices {
    pub(crate) fn new(
        link: Arc<Link>,
        target: Arc<Target>,
        identity: Controller,
        facts: Facts,
        parent: Arc<Parent>,
    ) -> Result<Self> {
        let instance = facts.instance;
        let control = Arc::pin_init(
            pin_init!(Control {
                link,
                target,
                facts,
                identity <- new_mutex!(identity),
            }),
            GFP_KERNEL,
        )?;
        let options = ClassDeviceOptions {
            name: &CString::try_from_fmt(fmt!("{}{instance}", names::CONTROLLERS))?,
            parent: Some(parent),
            minor: Some(instance as u32),
        };
        let controller = ClassDevice::new(&CONTROLLERS, options, control.clone())?;
        let options = ClassDeviceOptions {
            name: &CString::try_from_fmt(fmt!("{}-subsys{instance}", names::CONTROLLERS))?,
            parent: None,
            minor: None,
        };
        let subsystem = Arc::new(Subsystem(control), GFP_KERNEL)?;
        let subsystem = ClassDevice::new(&SUBSYSTEMS, options, subsystem)?;
        subsystem.link_to(&controller)?;
        Ok(Self {
            _subsystem: subsystem,
            controller,
        })
    }

    /// Returns the controller as the parent of disks.
    pub(crate) fn as_parent(&self) -> Result<Arc<Parent>> {
        self.controller.as_parent()
    }

    /// Sets how many queues there are now, with that for admin commands.
    pub(crate) fn set_queue_count(&self, queues: u32) {
        self.controller.data().facts.queues.store(queues, Relaxed);
    }

    /// Sets what the controller says of itself now.
    pub(crate) fn set_identity(&self, identity: Controller) {
        *self.controller.data().identity.lock() = identity;
    }
}
