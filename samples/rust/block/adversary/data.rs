// SPDX-License-Identifier: GPL-2.0

//! What the driver keeps for tag sets, disks, queues, requests, which misbehaves when it goes.

use super::{
    deeds,
    kind::Kind,
    place::Place,
    world::World, //
};
use kernel::{
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// What a tag set has.
pub(crate) struct Set<T: Kind> {
    pub(crate) world: Arc<World<T>>,
}

impl<T: Kind> Set<T> {
    pub(crate) fn new(world: &Arc<World<T>>) -> Self {
        world.born();
        Self {
            world: world.clone(),
        }
    }
}

impl<T: Kind> Drop for Set<T> {
    fn drop(&mut self) {
        deeds::occasion(&self.world, Place::DropTagSetData);
        self.world.gone();
    }
}

/// What a disk has.
pub(crate) struct Disk<T: Kind> {
    /// None for a disk that is never added.
    pub(crate) world: Option<Arc<World<T>>>,
}

impl<T: Kind> Disk<T> {
    pub(crate) fn new(world: &Arc<World<T>>) -> Self {
        world.born();
        Self {
            world: Some(world.clone()),
        }
    }
}

impl<T: Kind> Drop for Disk<T> {
    fn drop(&mut self) {
        if let Some(world) = &self.world {
            deeds::occasion(world, Place::DropQueueData);
            world.gone();
        }
    }
}

/// What a hardware queue has.
pub(crate) struct Hw<T: Kind> {
    world: Arc<World<T>>,
    pub(crate) line: T::Line,
}

impl<T: Kind> Hw<T> {
    pub(crate) fn new(world: &Arc<World<T>>, line: T::Line) -> Self {
        world.born();
        Self {
            world: world.clone(),
            line,
        }
    }
}

impl<T: Kind> Drop for Hw<T> {
    fn drop(&mut self) {
        deeds::occasion(&self.world, Place::DropHwData);
        self.world.gone();
    }
}

/// What a request has.
pub(crate) struct Command<T: Kind> {
    world: Arc<World<T>>,
    issues: Atomic<u32>,
}

impl<T: Kind> Command<T> {
    pub(crate) fn new(world: &Arc<World<T>>) -> Self {
        Self {
            world: world.clone(),
            issues: Atomic::new(0),
        }
    }

    /// Counts the times that the request comes, over all of its I/Os.
    pub(crate) fn issue(&self) -> u32 {
        self.issues.fetch_add(1, Relaxed)
    }
}

impl<T: Kind> Drop for Command<T> {
    fn drop(&mut self) {
        deeds::occasion(&self.world, Place::DropRequestData);
    }
}
