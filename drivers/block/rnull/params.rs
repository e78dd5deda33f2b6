// SPDX-License-Identifier: GPL-2.0

//! The module's parameters.
//!
//! They apply to the devices that are made when the module is loaded, and are the defaults of all
//! others.

use crate::{
    config::{
        self,
        Config, //
    },
    device::Defaults,
    names, //
    slow_path::FaultAttrs,
    system_limits,
};
#[cfg(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION)]
use kernel::fault::FaultSettings;
use kernel::prelude::*;

names::module_params! {
    pub(crate) nr_devices: uint = 1, "Number of devices to make at load. Default: 1";
}

/// Declares the parameters of the table of settings, and the function that reads them.
macro_rules! parameters {
    ($($name:ident
        $(: $type:ty $(, $param:ident: $param_type:ident $(($check:ident))? = $default:expr,
            $text:literal $(, $convert:ident)?)?)?;)*
    ) => {
        names::module_params! {
            $($($($param: $param_type $(($check))? = $default, $text;)?)?)*
        }

        /// The settings that the parameters ask for.
        fn settings() -> Config {
            Config {
                $($($name: parameters!(@field $($param $($convert)?)?),)?)*
            }
        }
    };
    (@field) => {
        Default::default()
    };
    (@field $param:ident) => {
        kernel::macros::paste!([<$param:upper>].get().into_field())
    };
    (@field $param:ident $convert:ident) => {
        kernel::macros::paste!(config::$convert([<$param:upper>].get()))
    };
}
config::settings!(parameters);

/// Conversion of the value of a parameter to a field of another type.
trait IntoField<T> {
    fn into_field(self) -> T;
}

impl<T> IntoField<T> for T {
    fn into_field(self) -> T {
        self
    }
}

impl IntoField<u32> for i32 {
    fn into_field(self) -> u32 {
        self as u32
    }
}

impl IntoField<bool> for i32 {
    fn into_field(self) -> bool {
        self != 0
    }
}

#[cfg(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION)]
names::module_params! {
    init_hctx: string, "Fail init_hctx: <interval>,<probability>,<space>,<times>";
    requeue: string, "Requeue requests: <interval>,<probability>,<space>,<times>";
    timeout: string, "Let requests time out: <interval>,<probability>,<space>,<times>";
}

fn check_irqmode(mode: i32) -> Result {
    check_mode(mode, config::IRQ_TIMER)
}

fn check_queue_mode(mode: i32) -> Result {
    check_mode(mode, config::QUEUE_MQ)
}

fn check_mode(mode: i32, last: u32) -> Result {
    match u32::try_from(mode) {
        Ok(mode) if mode <= last => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Brings `bs`, `home_node` and `submit_queues` into range, so that sysfs shows the effective
/// values. The values of other parameters are limited at power-on, for each device.
///
/// # Errors
///
/// `EINVAL` if no device can be made with these values.
pub(crate) fn sanitize() -> Result {
    let limits = system_limits::detect(POLL_QUEUES.get() as u32);

    let block_size = config::parameter_block_size(BS.get(), &limits);
    if block_size != BS.get() {
        pr_warn!("bs={} is too large, {block_size} is used\n", BS.get());
        BS.set(block_size);
    }

    let node = config::parameter_node(HOME_NODE.get(), &limits);
    if node != HOME_NODE.get() {
        pr_err!("home_node={} is not online\n", HOME_NODE.get());
        HOME_NODE.set(node);
    }

    let per_node = USE_PER_NODE_HCTX.get();
    SUBMIT_QUEUES.set(config::parameter_queues(
        SUBMIT_QUEUES.get(),
        per_node,
        &limits,
    ));

    // Checked here, since `nr_devices` may be zero.
    if settings().wants_requests() {
        pr_err!("queue_mode=1 is no longer available\n");
        return Err(EINVAL);
    }
    Ok(())
}

/// Returns the defaults of a new device.
///
/// # Errors
///
/// `EINVAL` if the attributes of a fault cannot be parsed.
pub(crate) fn defaults() -> Result<Defaults> {
    Ok(Defaults {
        settings: settings(),
        fault_attrs: fault_attrs()?,
    })
}

#[cfg(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION)]
fn fault_attrs() -> Result<FaultAttrs> {
    let read = |text: &CStr| {
        if text.is_empty() {
            return Ok(FaultSettings::default());
        }
        Ok::<_, Error>(FaultSettings {
            // Faults requested by module parameter are not logged.
            verbose: 0,
            ..FaultSettings::parse(text)?
        })
    };
    Ok(FaultAttrs {
        timeout: read(&TIMEOUT.get())?,
        requeue: read(&REQUEUE.get())?,
        init_hctx: read(&INIT_HCTX.get())?,
    })
}

#[cfg(not(CONFIG_BLK_DEV_RUST_NULL_FAULT_INJECTION))]
fn fault_attrs() -> Result<FaultAttrs> {
    Ok(FaultAttrs::default())
}
