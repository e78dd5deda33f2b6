// SPDX-License-Identifier: GPL-2.0

//! A device, which has a disk while the power is on.

use crate::{
    backing::Backing,
    cache::{
        self,
        WriteCache, //
    },
    config::{
        self,
        Config,
        ConfigError,
        SystemLimits,
        ValidatedConfig, //
    },
    disk::Disk,
    registry::{
        DiskName,
        Registry, //
    }, //
    slow_path::{
        FaultAttrs, //
        Faults,
        SlowPath,
    },
    store::Store,
    system_limits,
    zoned::Condition, //
};
use kernel::{
    block::{
        badblocks::BadBlocks,
        Sector, //
    },
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// The defaults of a new device.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) settings: Config,
    pub(crate) fault_attrs: FaultAttrs,
}

/// The settings and the data of a device, with a disk while the power is on.
///
/// Data and bad blocks are kept while the power is off, until the device is removed.
///
/// # Locking
///
/// `state` is the outermost lock of the driver. Adding a disk under it takes `Registry::disks` and
/// `SharedTags::tags`, one after the other. The I/O path takes none of these, but
/// `Throttle::bucket` and `PollList::requests`, neither of them inside another. On a zoned disk, it
/// takes the lock of one zone, and inside it `Zones::limits`. So does a change of a zone's
/// condition, under `state`. Inside of these come the locks of shards: one of a cache, and inside
/// it one of the store.
#[pin_data]
pub(crate) struct Device {
    registry: Arc<Registry>,
    /// The name of the disk. [`None`] if it is made from the index.
    name: Option<DiskName>,
    /// The limit on `poll_queues`, which is also its default.
    max_poll_queues: u32,
    bad_blocks: Arc<BadBlocks>,
    faults: Arc<Faults>,
    #[pin]
    state: Mutex<State>,
}

/// The state that `Device::state` protects.
struct State {
    settings: Config,
    /// Present since the first time that the disk was memory-backed.
    store: Option<Arc<Store>>,
    /// Present while the power is on.
    disk: Option<Disk>,
}

impl Device {
    /// Makes a device that is off.
    ///
    /// # Errors
    ///
    /// `EEXIST` if a disk that is on has its name; `ENOMEM`.
    pub(crate) fn new<'a>(
        registry: Arc<Registry>,
        name: Option<&'a CStr>,
        defaults: Defaults,
    ) -> impl PinInit<Self, Error> + 'a {
        try_pin_init!(Self {
            name: name.map(|name| registry.unused(name)).transpose()?,
            registry,
            max_poll_queues: defaults.settings.poll_queues,
            bad_blocks: Arc::new(BadBlocks::new()?, GFP_KERNEL)?,
            faults: Arc::new(Faults::new(&defaults.fault_attrs)?, GFP_KERNEL)?,
            state <- new_mutex!(
                State {
                    settings: defaults.settings,
                    store: None,
                    disk: None,
                },
                "Device::state"
            ),
        })
    }

    /// The faults that can be injected.
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the current settings.
    pub(crate) fn settings(&self) -> Config {
        self.state.lock().settings
    }

    /// Whether the power is on.
    pub(crate) fn is_on(&self) -> bool {
        self.state.lock().disk.is_some()
    }

    /// Changes the settings.
    ///
    /// # Errors
    ///
    /// `EBUSY` while the power is on.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Config)) -> Result {
        let mut state = self.state.lock();
        if state.disk.is_some() {
            return Err(EBUSY);
        }
        change(&mut state.settings);
        Ok(())
    }

    /// Returns the number of submission queues.
    pub(crate) fn submit_queues(&self) -> u32 {
        self.settings().submit_queues
    }

    /// Changes the number of submission queues, at any time.
    pub(crate) fn set_submit_queues(&self, count: u32) -> Result {
        self.set_queues(|settings| settings.submit_queues = count)
    }

    /// Returns the number of polled queues.
    pub(crate) fn poll_queues(&self) -> u32 {
        self.settings().poll_queues
    }

    /// Changes the number of polled queues, at any time.
    pub(crate) fn set_poll_queues(&self, count: u32) -> Result {
        self.set_queues(|settings| settings.poll_queues = count)
    }

    /// Changes the numbers of queues.
    ///
    /// While the power is off, any number is accepted. It is brought into range at power-on.
    fn set_queues(&self, change: impl FnOnce(&mut Config)) -> Result {
        let mut state = self.state.lock();
        let mut wanted = state.settings;
        change(&mut wanted);
        if let Some(disk) = state.disk.as_ref().filter(|disk| disk.has_queues()) {
            // Shared tags are used by other disks, too.
            if state.settings.shared_tags || !config::queues_allowed(&wanted, &self.system_limits())
            {
                return Err(EINVAL);
            }
            disk.set_queues(&wanted)?;
        }
        state.settings = wanted;
        Ok(())
    }

    /// The bad blocks.
    pub(crate) fn bad_blocks(&self) -> &BadBlocks {
        &self.bad_blocks
    }

    /// Changes the bad blocks, at any time.
    pub(crate) fn change_bad_blocks(&self, change: impl FnOnce(&BadBlocks) -> Result) -> Result {
        let state = self.state.lock();
        let result = change(&self.bad_blocks);
        // A failed change may have added some.
        if let Some(disk) = &state.disk {
            disk.enable_slow_path();
        }
        result
    }

    /// Makes a zone read-only or offline, or empty if it is just that already. `parse` returns a
    /// sector of the zone.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the disk is not on or not zoned, or has no such sequential zone; those of
    /// `parse`.
    pub(crate) fn toggle_zone(
        &self,
        parse: impl FnOnce() -> Result<u64>,
        failed: Condition,
    ) -> Result {
        let state = self.state.lock();
        match &state.disk {
            Some(disk) if state.settings.zoned => disk.toggle_zone(Sector(parse()?), failed),
            _ => Err(EINVAL),
        }
    }

    /// Returns the limits for the settings.
    fn system_limits(&self) -> SystemLimits {
        system_limits::detect(self.max_poll_queues)
    }

    /// Switches the power on or off.
    pub(crate) fn set_power(&self, on: bool) -> Result {
        if on {
            self.power_on()
        } else {
            self.power_off();
            Ok(())
        }
    }

    /// Adds the disk, unless there is one. After an error nothing has changed.
    pub(crate) fn power_on(&self) -> Result {
        let mut state = self.state.lock();
        if state.disk.is_none() {
            let disk = self.add_disk(&mut state)?;
            state.disk = Some(disk);
        }
        Ok(())
    }

    /// Removes the disk, which waits for its requests to end.
    pub(crate) fn power_off(&self) {
        self.state.lock().disk = None;
    }

    /// Adds the disk that the settings describe, and updates them to the effective values.
    fn add_disk(&self, state: &mut State) -> Result<Disk> {
        let settings = &mut state.settings;
        let plan = settings
            .validate(&self.system_limits())
            .map_err(log_error)?;
        if settings.lacks_bios() {
            pr_err!("queue_mode=0 is not available with zones, using 2\n");
        }
        if settings.discard && !plan.settings.discard {
            pr_info!("discard needs memory_backed, and no zones, so there is none\n");
        }
        let slot = self.registry.reserve(self.name)?;
        let disk = Disk::add(
            &plan,
            backing(&plan, &mut state.store)?,
            SlowPath::new(&plan, self.faults.clone(), self.bad_blocks.clone())?,
            slot,
        )?;
        *settings = Config {
            index: disk.index(),
            ..plan.settings
        };
        pr_info!("disk {} created\n", disk.name());
        Ok(disk)
    }
}

/// Returns the backing store of the disk that `plan` describes, if that keeps data. The data is in
/// `store`.
fn backing(plan: &ValidatedConfig, store: &mut Option<Arc<Store>>) -> Result<Option<Backing>> {
    if !plan.settings.memory_backed {
        return Ok(None);
    }
    let store = match store {
        Some(store) => store.clone(),
        None => store
            .insert(Arc::new(Store::new(plan.block_size)?, GFP_KERNEL)?)
            .clone(),
    };
    // The data may have been written with another block size.
    store.set_block_size(plan.block_size);
    Ok(Some(match plan.settings.cache_size {
        0 => Backing::Memory(store),
        mebibytes => {
            let size = (mebibytes as u64) << 20;
            Backing::Cached(WriteCache::new(store, size, plan.block_size)?)
        }
    }))
}

/// Logs why the settings are rejected. Returns the error.
fn log_error(reason: ConfigError) -> Error {
    match reason {
        ConfigError::QueueMode => pr_err!("queue_mode=1 is no longer available\n"),
        ConfigError::BlockSize => pr_err!("invalid block size\n"),
        ConfigError::CachedBlockSize => pr_err!(
            "cache_size needs a block size of {} at least\n",
            cache::SMALLEST_BLOCK
        ),
        ConfigError::MaxSectors => pr_err!("max_sectors is less than a page or a block\n"),
        ConfigError::Zoned => pr_err!("zoned needs CONFIG_BLK_DEV_ZONED\n"),
        ConfigError::ZoneSize => {
            pr_err!("zone_size has to be a power of two, at most the size of the disk\n");
        }
        ConfigError::ZoneTooLarge => {
            pr_err!("zone_size is too large\n");
            return ENODEV;
        }
        ConfigError::ZoneCapacity => {
            pr_err!("zone_capacity is larger than a zone, or the last zone is smaller\n");
        }
        ConfigError::TooManyZones => {
            pr_err!("zone_size is too small for the size of the disk\n");
            return ENOMEM;
        }
    }
    EINVAL
}
