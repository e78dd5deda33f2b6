// SPDX-License-Identifier: GPL-2.0

//! The disks that are on.
//!
//! A disk holds its [`Slot`] for as long as it may be seen, so an index, which is also the minor
//! number, is given out again only when the disk that had it is gone.

use crate::{
    config::Config,
    names,
    tags::SharedTags, //
};
use kernel::{
    block::major::BlockMajor,
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// The name of a disk: at most 31 bytes, the rest is cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskName {
    /// Ends with a NUL at the latest in the last byte.
    bytes: [u8; Self::LEN],
}

impl DiskName {
    /// Bytes in a disk's name, with the NUL: C's `DISK_NAME_LEN`.
    const LEN: usize = 32;

    /// Returns `name`, cut to fit.
    pub(crate) fn new(name: &CStr) -> Self {
        let mut bytes = [0; Self::LEN];
        for (to, from) in bytes.iter_mut().take(Self::LEN - 1).zip(name.to_bytes()) {
            *to = *from;
        }
        Self { bytes }
    }

    /// Returns the name for the disk with `index`.
    pub(crate) fn numbered(index: u32) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{}{index}", names::DISKS))?;
        Ok(Self::new(&name))
    }

    /// Returns the name as C reads it.
    pub(crate) fn as_cstr(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// All disks that are on, and what they share.
#[pin_data]
pub(crate) struct Registry {
    major: Arc<BlockMajor>,
    #[pin]
    shared_tags: SharedTags,
    /// Sorted by index.
    #[pin]
    disks: Mutex<KVec<(u32, DiskName)>>,
}

impl Registry {
    /// Takes a major number, for disks to come; `parameters` say which tags they can share.
    pub(crate) fn new(parameters: Config) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            major: BlockMajor::register(names::DISKS)?,
            shared_tags <- SharedTags::new(parameters),
            disks <- new_mutex!(KVec::new(), "Registry::disks"),
        })
    }

    /// Returns the name for a disk to come, unless a disk that is on has exactly this name.
    pub(crate) fn unused(&self, name: &CStr) -> Result<DiskName> {
        let disks = self.disks.lock();
        if disks.iter().any(|(_, disk)| disk.as_cstr() == name) {
            return Err(EEXIST);
        }
        Ok(DiskName::new(name))
    }

    /// Enters a disk under the lowest free index, with `name` or one made from the index.
    pub(crate) fn try_take(self: &Arc<Self>, name: Option<DiskName>) -> Result<Slot> {
        let mut disks = self.disks.lock();
        disks.reserve(1, GFP_KERNEL)?;
        let index = (0..)
            .zip(disks.iter())
            .find(|(free, (taken, _))| free != taken)
            .map_or(disks.len() as u32, |(free, _)| free);
        let name = match name {
            Some(name) => name,
            None => DiskName::numbered(index)?,
        };
        disks.insert_within_capacity(index as usize, (index, name))?;
        Ok(Slot {
            registry: self.clone(),
            index,
            name,
        })
    }
}

/// A disk's entry in the registry; dropping it frees index and name.
pub(crate) struct Slot {
    registry: Arc<Registry>,
    index: u32,
    name: DiskName,
}

impl Slot {
    /// The major number of the disk.
    pub(crate) fn major(&self) -> &Arc<BlockMajor> {
        &self.registry.major
    }

    /// The tags that the disk may share with others.
    pub(crate) fn shared_tags(&self) -> &SharedTags {
        &self.registry.shared_tags
    }

    /// The number of the disk, also its minor number.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The name of the disk.
    pub(crate) fn name(&self) -> &CStr {
        self.name.as_cstr()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut disks = self.registry.disks.lock();
        disks.retain(|(index, _)| *index != self.index);
    }
}
