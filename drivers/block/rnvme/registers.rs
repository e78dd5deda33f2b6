// SPDX-License-Identifier: GPL-2.0

//! The registers of a controller, as numbers.
//!
//! The layouts are those of the NVM Express Base Specification 2.0, "Controller Properties". A
//! controller may answer anything: what this driver cannot work with is refused by name.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

/// The offsets of registers in the first BAR.
pub(crate) mod offset {
    /// Controller capabilities, 64 bits.
    pub(crate) const CAP: usize = 0x00;
    /// Version.
    pub(crate) const VS: usize = 0x08;
    /// Controller configuration.
    pub(crate) const CC: usize = 0x14;
    /// Controller status.
    pub(crate) const CSTS: usize = 0x1c;
    /// Reset of the subsystem.
    pub(crate) const NSSR: usize = 0x20;
    /// Attributes of the admin queues.
    pub(crate) const AQA: usize = 0x24;
    /// Base address of the admin submission queue, 64 bits.
    pub(crate) const ASQ: usize = 0x28;
    /// Base address of the admin completion queue, 64 bits.
    pub(crate) const ACQ: usize = 0x30;
    /// Time-outs for the controller to become ready.
    pub(crate) const CRTO: usize = 0x68;
    /// The first doorbell.
    pub(crate) const DOORBELLS: usize = 0x1000;
}

/// What has the subsystem reset when it is written to NSSR: "NVMe".
pub(crate) const SUBSYSTEM_RESET: u32 = 0x4e56_4d65;

/// The size of an entry of a submission queue, as a power of two.
pub(crate) const SQ_ENTRY_SHIFT: u8 = 6;

/// The size of an entry of a completion queue, as a power of two.
pub(crate) const CQ_ENTRY_SHIFT: u8 = 4;

/// The most time that a controller gets to become ready, in milliseconds. CAP cannot say more, but
/// CRTO can.
pub(crate) const MAX_READY_TIMEOUT: u32 = 128_000;

/// What a register contains that is not there any more.
pub(crate) const GONE: u32 = u32::MAX;

/// Why this driver cannot work with a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsupported {
    /// All registers read as ones.
    Gone,
    /// Queues of a single entry, which can hold nothing.
    QueueSize,
    /// Its smallest page is larger than ours.
    PageSize,
    /// It lacks the NVM command set.
    CommandSet,
    /// The doorbells of the admin queues are beyond the BAR.
    Doorbells,
    /// Entries of queues that are larger, or smaller, than those of this driver.
    EntrySize,
}

impl Unsupported {
    /// Says what is wrong, as the end of a sentence.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Gone => "its registers cannot be read",
            Self::QueueSize => "its queues have room for one entry only",
            Self::PageSize => "it needs pages of more than 4096 bytes",
            Self::CommandSet => "it lacks the NVM command set",
            Self::Doorbells => "its doorbells are beyond its memory",
            Self::EntrySize => "its queue entries are not of 64 and 16 bytes",
        }
    }
}

/// The capabilities of a controller with which this driver can work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capabilities(u64);

impl Capabilities {
    /// Reads the register CAP.
    pub(crate) fn parse(cap: u64) -> Result<Self, Unsupported> {
        let this = Self(cap);
        if cap == u64::MAX {
            Err(Unsupported::Gone)
        } else if this.queue_entries() < 2 {
            Err(Unsupported::QueueSize)
        } else if this.field(48, 4) != 0 {
            Err(Unsupported::PageSize)
        } else if !this.has_nvm_set() && !this.has_set_identifiers() {
            Err(Unsupported::CommandSet)
        } else {
            Ok(this)
        }
    }

    fn field(self, shift: u32, bits: u32) -> u64 {
        self.0 >> shift & ((1 << bits) - 1)
    }

    /// Returns whether the subsystem can be reset.
    pub(crate) fn has_subsystem_reset(self) -> bool {
        self.field(36, 1) != 0
    }

    fn has_nvm_set(self) -> bool {
        self.field(37, 1) != 0
    }

    fn has_set_identifiers(self) -> bool {
        self.field(43, 1) != 0
    }

    /// Returns the most entries that an I/O queue may have: 2 to 65,536.
    pub(crate) fn queue_entries(self) -> u32 {
        self.field(0, 16) as u32 + 1
    }

    /// Returns whether the register CRTO exists.
    pub(crate) fn has_ready_timeouts(self) -> bool {
        self.field(59, 1) != 0
    }

    /// Returns for how long to wait for the controller to become ready, or not ready, in
    /// milliseconds. `crto` is the register CRTO, if it exists.
    ///
    /// This is at least 500, and at most [`MAX_READY_TIMEOUT`].
    pub(crate) fn ready_timeout(self, crto: Option<u32>) -> u32 {
        let units = self.field(24, 8) as u32;
        let with_media = crto.map_or(0, |crto| crto & 0xffff);
        // The unit is half a second. One more, since the value may be rounded down.
        ((units.max(with_media) + 1) * 500).min(MAX_READY_TIMEOUT)
    }

    /// Returns the register CC for an enabled controller.
    pub(crate) fn configuration(self) -> Configuration {
        let set = if self.has_set_identifiers() { 6 } else { 0 };
        Configuration(u32::from(CQ_ENTRY_SHIFT) << 20 | u32::from(SQ_ENTRY_SHIFT) << 16 | set << 4)
    }

    /// Returns where the doorbell of a queue is, in a BAR of `len` bytes.
    pub(crate) fn doorbell(self, queue: u16, side: Side, len: usize) -> Result<usize, Unsupported> {
        let stride = 4u64 << self.field(32, 4);
        let index = 2 * u64::from(queue) + side as u64;
        // At most 2^12 + 2^17 * 2^17: this does not overflow.
        let at = offset::DOORBELLS as u64 + index * stride;
        if at + 4 <= len as u64 {
            // It fits, as `len` does.
            Ok(at as usize)
        } else {
            Err(Unsupported::Doorbells)
        }
    }
}

/// One of the two sides of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The submission queue, whose doorbell takes the tail.
    Submission = 0,
    /// The completion queue, whose doorbell takes the head.
    Completion = 1,
}

/// The register CC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Configuration(pub(crate) u32);

impl Configuration {
    /// Returns the value that enables the controller.
    pub(crate) fn enabled(self) -> u32 {
        self.0 | 1
    }

    /// Returns the value with which the controller stays disabled.
    pub(crate) fn disabled(self) -> u32 {
        self.0
    }

    /// Returns the value that announces a normal shutdown to a controller with this value, and
    /// changes nothing else.
    pub(crate) fn shutdown(self) -> u32 {
        self.0 & !Self::SHUTDOWN | 1 << 14
    }

    /// Returns the value that disables a controller with this value, which firmware may have left.
    pub(crate) fn stopped(self) -> u32 {
        self.0 & !(Self::SHUTDOWN | 1)
    }

    /// The field that announces a shutdown.
    const SHUTDOWN: u32 = 3 << 14;
}

/// The register VS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(pub(crate) u32);

impl Version {
    /// Returns whether the controller follows that version of the specification, or a later one.
    pub(crate) fn is_at_least(self, major: u16, minor: u8) -> bool {
        self.0 >> 8 >= u32::from(major) << 8 | u32::from(minor)
    }
}

/// The register CSTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    /// Returns whether the device is not there any more.
    pub(crate) fn is_gone(self) -> bool {
        self.0 == GONE
    }

    /// Returns whether the controller takes commands.
    pub(crate) fn is_ready(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether an error occurred of which only a reset helps.
    pub(crate) fn is_fatal(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// Returns whether a shutdown is complete.
    pub(crate) fn is_shut_down(self) -> bool {
        self.0 >> 2 & 3 == 2
    }

    /// Returns the value to be written to clear that the subsystem was reset, if it was.
    pub(crate) fn subsystem_reset(self) -> Option<u32> {
        let bit = self.0 & 1 << 4;
        (bit != 0).then_some(bit)
    }
}

/// Returns the register AQA for admin queues of so many entries each, which are 2 to 4,096.
pub(crate) fn admin_queue_attributes(entries: u16) -> u32 {
    let zero_based = u32::from(entries.clamp(2, 4096)) - 1;
    zero_based << 16 | zero_based
}
