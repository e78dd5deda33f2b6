// SPDX-License-Identifier: GPL-2.0

//! The directory in configfs through which a test program leads the scenes.

use super::{
    leak::Leak,
    place::Place,
    scene::{
        self,
        Scene, //
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

/// The scene that is on.
#[pin_data]
pub(crate) struct Stages {
    seed: u64,
    without: u32,
    #[pin]
    scene: Mutex<Option<Arc<dyn Scene>>>,
}

impl Stages {
    pub(crate) fn new(seed: u64, without: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            seed,
            without,
            scene <- new_mutex!(None),
        })
    }

    fn scene(&self) -> Result<Arc<dyn Scene>> {
        self.scene.lock().clone().ok_or(ENODEV)
    }

    /// Begins a scene, where there is none.
    pub(crate) fn begin(&self, step: u64) -> Result {
        let mut scene = self.scene.lock();
        if scene.is_some() {
            return Err(EBUSY);
        }
        *scene = Some(scene::begin(self.seed, step, self.without)?);
        Ok(())
    }

    pub(crate) fn act(&self, number: u64) -> Result {
        self.scene()?.act(number)
    }

    /// Ends the scene. One that does not end stays in memory, with what is left of it.
    pub(crate) fn end(&self) -> Result {
        let scene = self.scene.lock().take();
        let Some(scene) = scene else { return Ok(()) };
        let ended = scene.end();
        if ended.is_err() {
            core::mem::forget(scene);
        }
        ended
    }

    /// Has something leaked, at once or by a callback a little later.
    fn leak(&self, leak: Leak) -> Result {
        self.scene()?.leak(leak)
    }

    fn occasion(&self, place: Place) {
        if let Ok(scene) = self.scene() {
            scene.occasion(place);
        }
    }
}

/// The top directory, in which others can be made.
pub(crate) struct Tree {
    stages: Arc<Stages>,
}

impl Tree {
    pub(crate) fn new(stages: Arc<Stages>) -> Self {
        Self { stages }
    }

    fn show(&self, page: &mut Page<'_>) -> Result {
        self.stages.occasion(Place::Show);
        writeln!(page, "{}", self.stages.scene().is_ok())
    }

    fn begin(&self, text: &Text) -> Result {
        self.stages.begin(text.kstrtoull(0)?)
    }

    fn act(&self, text: &Text) -> Result {
        self.stages.occasion(Place::Store);
        self.stages.act(text.kstrtoull(0)?)
    }

    fn work(&self, _: &Text) -> Result {
        self.stages.scene()?.work();
        Ok(())
    }

    fn end(&self, _: &Text) -> Result {
        self.stages.end()
    }

    fn places(&self, page: &mut Page<'_>) -> Result {
        Place::write_counts(page)
    }

    fn leaks(&self, page: &mut Page<'_>) -> Result {
        writeln!(page, "{}", self.stages.scene()?.leaks() as u8)
    }

    fn leak(&self, text: &Text) -> Result {
        let leak = Leak::of(text.kstrtoull(0)?).ok_or(EINVAL)?;
        self.stages.leak(leak)
    }
}

impl Group for Tree {
    type Child = Branch;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        Attribute::rw(c"begin", Self::show, Self::begin),
        Attribute::wo(c"act", Self::act),
        Attribute::wo(c"work", Self::work),
        Attribute::wo(c"end", Self::end),
        Attribute::ro(c"places", Self::places),
        Attribute::rw(c"leak", Self::leaks, Self::leak),
    ];

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        groups.add(c"leaf", Ok(Leaf::new(&self.stages)))
    }

    fn make_group(&self, name: &CStr) -> impl PinInit<Branch, Error> {
        self.stages.occasion(Place::MakeGroup);
        if name.to_bytes().starts_with(b"no") {
            return Err(EACCES);
        }
        Ok(Branch {
            stages: self.stages.clone(),
            fault: Fault::new(c"fault", &Default::default())?,
        })
    }

    fn drop_item(&self, _: &Branch) {
        self.stages.occasion(Place::DropItem);
    }
}

/// A directory that a user makes, with two that come with it.
pub(crate) struct Branch {
    stages: Arc<Stages>,
    fault: Fault,
}

impl Branch {
    fn show(&self, page: &mut Page<'_>) -> Result {
        self.stages.occasion(Place::Show);
        // More than fits.
        for _ in 0..Page::SIZE {
            write!(page, "ab")?;
        }
        Ok(())
    }

    fn store(&self, text: &Text) -> Result {
        self.stages.occasion(Place::Store);
        text.kstrtoint(0).map(|_| ())
    }
}

impl Group for Branch {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] =
        &[Attribute::rw(c"value", Self::show, Self::store)];

    fn default_groups(&self, groups: &mut DefaultGroups<'_>) -> Result {
        groups.add_fault(&self.fault)?;
        groups.add(c"leaf", Ok(Leaf::new(&self.stages)))
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.stages.occasion(Place::DropDirectory);
    }
}

/// A directory in which none can be made.
pub(crate) struct Leaf(Arc<Stages>);

impl Leaf {
    pub(crate) fn new(stages: &Arc<Stages>) -> Self {
        Self(stages.clone())
    }
}

impl Group for Leaf {
    type Child = NoChild;
    const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::ro(c"value", |leaf: &Leaf, _| {
        leaf.0.occasion(Place::Show);
        Ok(())
    })];
}

impl Drop for Leaf {
    fn drop(&mut self) {
        self.0.occasion(Place::DropDirectory);
    }
}
