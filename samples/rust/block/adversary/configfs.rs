// SPDX-License-Identifier: GPL-2.0

//! The configfs groups through which a test program controls the scenarios.

use super::{
    call_site::CallSite,
    leak::Leak,
    scenario::{
        self,
        Scenario, //
    },
};
use kernel::{
    configfs::{
        Attribute,
        DefaultGroups,
        Group,
        NoChild,
        Page,
        Text, //
    },
    fault::Fault,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// The current scenario.
#[pin_data]
pub(crate) struct Controller {
    seed: u64,
    disabled: u32,
    #[pin]
    scenario: Mutex<Option<Arc<dyn Scenario>>>,
}

impl Controller {
    pub(crate) fn new(seed: u64, disabled: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            seed,
            disabled,
            scenario <- new_mutex!(None),
        })
    }

    fn scenario(&self) -> Result<Arc<dyn Scenario>> {
        self.scenario.lock().clone().ok_or(ENODEV)
    }

    /// Begins a scenario.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is one already.
    pub(crate) fn begin(&self, step: u64) -> Result {
        let mut scenario = self.scenario.lock();
        if scenario.is_some() {
            return Err(EBUSY);
        }
        *scenario = Some(scenario::begin(self.seed, step, self.disabled)?);
        Ok(())
    }

    pub(crate) fn act(&self, number: u64) -> Result {
        self.scenario()?.act(number)
    }

    /// Ends the scenario. A scenario that fails to end is leaked with all its objects.
    pub(crate) fn end(&self) -> Result {
        let scenario = self.scenario.lock().take();
        let Some(scenario) = scenario else {
            return Ok(());
        };
        let ended = scenario.end();
        if ended.is_err() {
            core::mem::forget(scenario);
        }
        ended
    }

    /// Leaks an object, at once or in a later callback.
    fn leak(&self, leak: Leak) -> Result {
        self.scenario()?.leak(leak)
    }

    fn misuse_at(&self, site: CallSite) {
        if let Ok(scenario) = self.scenario() {
            scenario.misuse_at(site);
        }
    }
}

/// The group of the subsystem, in which `mkdir` makes others.
pub(crate) struct RootGroup {
    controller: Arc<Controller>,
}

impl RootGroup {
    pub(crate) fn new(controller: Arc<Controller>) -> Self {
        Self { controller }
    }

    fn show(&self, page: &mut Page<'_>) -> Result {
        self.controller.misuse_at(CallSite::Show);
        writeln!(page, "{}", self.controller.scenario().is_ok())
    }

    fn begin(&self, text: &Text) -> Result {
        self.controller.begin(text.kstrtoull(0)?)
    }

    fn act(&self, text: &Text) -> Result {
        self.controller.misuse_at(CallSite::Store);
        self.controller.act(text.kstrtoull(0)?)
    }

    fn work(&self, _: &Text) -> Result {
        self.controller.scenario()?.work();
        Ok(())
    }

    fn end(&self, _: &Text) -> Result {
        self.controller.end()
    }

    fn call_sites(&self, page: &mut Page<'_>) -> Result {
        CallSite::write_counts(page)
    }

    fn leaks(&self, page: &mut Page<'_>) -> Result {
        writeln!(page, "{}", u8::from(self.controller.scenario()?.leaks()))
    }

    fn leak(&self, text: &Text) -> Result {
        let leak = Leak::of(text.kstrtoull(0)?).ok_or(EINVAL)?;
        self.controller.leak(leak)
    }
}

impl Group for RootGroup {
    type Child = UserGroup;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        Attribute::rw(c"begin", Self::show, Self::begin),
        Attribute::wo(c"act", Self::act),
        Attribute::wo(c"work", Self::work),
        Attribute::wo(c"end", Self::end),
        Attribute::ro(c"places", Self::call_sites),
        Attribute::rw(c"leak", Self::leaks, Self::leak),
    ];

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        groups.add(c"leaf", Ok(LeafGroup::new(&self.controller)))
    }

    fn make_group(&self, name: &CStr) -> impl PinInit<UserGroup, Error> {
        self.controller.misuse_at(CallSite::MakeGroup);
        if name.to_bytes().starts_with(b"no") {
            return Err(EACCES);
        }
        Ok(UserGroup {
            controller: self.controller.clone(),
            fault: Fault::new(c"fault", &Default::default())?,
        })
    }

    fn drop_item(&self, _: &UserGroup) {
        self.controller.misuse_at(CallSite::DropItem);
    }
}

/// A group made by `mkdir`, with two default groups.
pub(crate) struct UserGroup {
    controller: Arc<Controller>,
    fault: Fault,
}

impl UserGroup {
    fn show(&self, page: &mut Page<'_>) -> Result {
        self.controller.misuse_at(CallSite::Show);
        // More than the page holds.
        for _ in 0..Page::SIZE {
            write!(page, "ab")?;
        }
        Ok(())
    }

    fn store(&self, text: &Text) -> Result {
        self.controller.misuse_at(CallSite::Store);
        text.kstrtoint(0).map(|_| ())
    }
}

impl Group for UserGroup {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::rw(c"value", Self::show, Self::store)];

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        groups.add_fault(&self.fault)?;
        groups.add(c"leaf", Ok(LeafGroup::new(&self.controller)))
    }
}

impl Drop for UserGroup {
    fn drop(&mut self) {
        self.controller.misuse_at(CallSite::DropGroup);
    }
}

/// A group without children.
pub(crate) struct LeafGroup(Arc<Controller>);

impl LeafGroup {
    pub(crate) fn new(controller: &Arc<Controller>) -> Self {
        Self(controller.clone())
    }
}

impl Group for LeafGroup {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::ro(c"value", |leaf: &LeafGroup, _| {
            leaf.0.misuse_at(CallSite::Show);
            Ok(())
        })];
}

impl Drop for LeafGroup {
    fn drop(&mut self) {
        self.0.misuse_at(CallSite::DropGroup);
    }
}
