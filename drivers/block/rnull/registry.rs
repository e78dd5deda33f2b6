// SPDX-License-Identifier: GPL-2.0

//! The registry of the disks that are on.
//!
//! A disk holds its [`Slot`] until it is removed. So an index, which is also the minor number, is
//! reused only when the disk that had it is gone.

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

/// The name of a disk, truncated to 31 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskName {
    /// NUL-terminated.
    bytes: [u8; Self::LEN],
}

impl DiskName {
    /// The size of a disk name with the NUL: C's `DISK_NAME_LEN`.
    const LEN: usize = 32;

    /// Returns `name`, truncated if necessary.
    pub(crate) fn new(name: &CStr) -> Self {
        let mut bytes = [0; Self::LEN];
        for (to, from) in bytes.iter_mut().take(Self::LEN - 1).zip(name.to_bytes()) {
            *to = *from;
        }
        Self { bytes }
    }

    /// Returns the default name for the disk with `index`.
    pub(crate) fn numbered(index: u32) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{}{index}", names::DISKS))?;
        Ok(Self::new(&name))
    }

    /// Returns the name as a C string.
    pub(crate) fn as_cstr(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// The disks that are on, and what they share.
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
    /// Registers a major number. `parameters` describe the tags that disks can share.
    pub(crate) fn new(parameters: Config) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            major: BlockMajor::register(names::DISKS)?,
            shared_tags <- SharedTags::new(parameters),
            disks <- new_mutex!(KVec::new(), "Registry::disks"),
        })
    }

    /// Returns the name for a new disk.
    ///
    /// # Errors
    ///
    /// `EEXIST` if a disk that is on has this name.
    pub(crate) fn unused(&self, name: &CStr) -> Result<DiskName> {
        let disks = self.disks.lock();
        if disks.iter().any(|(_, disk)| disk.as_cstr() == name) {
            return Err(EEXIST);
        }
        Ok(DiskName::new(name))
    }

    /// Reserves the lowest free index for a disk, with `name` or the default name.
    pub(crate) fn reserve(self: &Arc<Self>, name: Option<DiskName>) -> Result<Slot> {
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

/// The entry of a disk in the registry. Dropping it frees the index and the name.
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

    /// The index of the disk, also its minor number.
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
