// SPDX-License-Identifier: GPL-2.0

//! An event that a controller reports, as the result of Asynchronous Event Request.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

use core::fmt;

/// Returns the events to ask for, as the value of the feature Asynchronous Event Configuration,
/// from the field OAES: that the health is critical, which each controller may report; that
/// namespaces have changed; and that the activation of firmware begins.
pub(crate) fn wanted_events(offered: u32) -> u32 {
    const CRITICAL_WARNINGS: u32 = 0x1f;
    const NOTICES: u32 = 1 << 8 | 1 << 9;
    CRITICAL_WARNINGS | offered & NOTICES
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// What it is about.
    pub(crate) kind: EventKind,
    /// The number of the log page by which the event is cleared.
    pub(crate) log_page: u8,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// An internal error that persists. Only a reset may help.
    PersistentError,
    /// Another error, by its number.
    Error(u8),
    /// The state of health, by its number.
    Health(u8),
    /// Namespaces, or what they are, have changed.
    NamespacesChanged,
    /// The controller begins to activate firmware, and may not process commands meanwhile.
    FirmwareActivation,
    /// Anything else, by its type and number.
    Other(u8, u8),
}

impl Event {
    /// Parses the result of the command.
    pub(crate) fn parse(result: u32) -> Self {
        let [kind, info, log_page, _] = result.to_le_bytes();
        let kind = match (kind & 7, info) {
            (0, 3) => EventKind::PersistentError,
            (0, _) => EventKind::Error(info),
            (1, _) => EventKind::Health(info),
            (2, 0) => EventKind::NamespacesChanged,
            (2, 1) => EventKind::FirmwareActivation,
            (kind, _) => EventKind::Other(kind, info),
        };
        Self { kind, log_page }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PersistentError => f.write_str("error that persists"),
            Self::Error(info) => write!(f, "error, status {info}"),
            Self::Health(info) => write!(f, "health, status {info}"),
            Self::NamespacesChanged => f.write_str("namespaces have changed"),
            Self::FirmwareActivation => f.write_str("firmware is being activated"),
            Self::Other(kind, info) => write!(f, "type {kind}, status {info}"),
        }
    }
}

impl EventKind {
    /// Returns the length in bytes of the log page that is read to clear the event.
    ///
    /// A page about errors or health is not read: if its cause persists, the controller would
    /// report the event again at once. A user who reads the page clears the event.
    pub(crate) fn clear_by_reading(self) -> Option<u32> {
        match self {
            Self::NamespacesChanged => Some(4096),
            Self::FirmwareActivation => Some(512),
            _ => None,
        }
    }
}
