// SPDX-License-Identifier: GPL-2.0

//! Checks what is made of the events that a controller reports, which may be anything.

#[path = "../../../../../drivers/block/rnvme/event.rs"]
mod event;

use event::*;
use proptest::prelude::*;

#[test]
fn known_events() {
    for (result, kind, log_page) in [
        (0x0001_0300, EventKind::PersistentError, 1),
        (0x0001_0000, EventKind::Error(0), 1),
        (0x0002_0101, EventKind::Health(1), 2),
        (0x0004_0002, EventKind::NamespacesChanged, 4),
        (0x0003_0102, EventKind::FirmwareActivation, 3),
        (0x0007_0202, EventKind::Other(2, 2), 7),
        (0x00ff_0007, EventKind::Other(7, 0), 0xff),
    ] {
        assert_eq!(Event::parse(result), Event { kind, log_page });
    }
    assert_eq!(EventKind::NamespacesChanged.clear_by_reading(), Some(4096));
    assert_eq!(EventKind::FirmwareActivation.clear_by_reading(), Some(512));
}

proptest! {
    #[test]
    fn reserved_bits_are_ignored(result: u32) {
        prop_assert_eq!(Event::parse(result), Event::parse(result & 0x00ff_ff07));
    }

    #[test]
    fn only_notices_that_are_offered_are_wanted(offered: u32) {
        prop_assert_eq!(wanted_events(offered) & !0x1f, offered & 0x300);
        prop_assert_eq!(wanted_events(offered) & 0x1f, 0x1f);
    }

    #[test]
    fn what_is_read_is_a_whole_number_of_dwords(result: u32) {
        if let Some(bytes) = Event::parse(result).kind.clear_by_reading() {
            prop_assert!(bytes % 4 == 0 && (4..=4096).contains(&bytes));
            // Errors and health are left to others.
            prop_assert_eq!(result & 7, 2);
        }
    }
}
