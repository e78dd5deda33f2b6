// SPDX-License-Identifier: GPL-2.0

//! Checks what is made of the registers of a controller that may contain anything.

#[path = "../../../../../drivers/block/rnvme/registers.rs"]
mod registers;

use proptest::prelude::*;
use registers::*;

/// A CAP that this driver supports: 64 entries, 7.5 s, the NVM command set.
const USUAL: u64 = 1 << 37 | 15 << 24 | 63;

fn parse(cap: u64) -> Result<Capabilities, Unsupported> {
    Capabilities::parse(cap)
}

#[test]
fn unsupported_controllers_are_refused() {
    assert!(parse(USUAL).is_ok());
    assert_eq!(parse(u64::MAX), Err(Unsupported::Gone));
    assert_eq!(parse(0), Err(Unsupported::QueueSize));
    assert_eq!(parse(USUAL & !0xffff), Err(Unsupported::QueueSize));
    assert_eq!(parse(USUAL | 1 << 48), Err(Unsupported::PageSize));
    assert_eq!(parse(USUAL & !(1 << 37)), Err(Unsupported::CommandSet));
    // A controller without any I/O command set.
    assert_eq!(
        parse(USUAL & !(1 << 37) | 1 << 44),
        Err(Unsupported::CommandSet)
    );
}

#[test]
fn the_configuration_has_our_sizes() {
    assert_eq!(parse(USUAL).unwrap().configuration().disabled(), 0x460000);
    assert_eq!(parse(USUAL).unwrap().configuration().enabled(), 0x460001);
    let by_identifier = parse(USUAL | 1 << 43).unwrap().configuration();
    assert_eq!(by_identifier.enabled(), 0x460061);
}

#[test]
fn a_shutdown_changes_nothing_else() {
    let enabled = Configuration(0x460001);
    assert_eq!(enabled.shutdown(), 0x464001);
    // What is not enabled does not become so.
    assert_eq!(Configuration(0).shutdown(), 0x4000);
    assert_eq!(Configuration(0x468001).shutdown(), 0x464001);
    assert_eq!(Configuration(enabled.shutdown()).stopped(), 0x460000);
    assert_eq!(Configuration(0x46c071).stopped(), 0x460070);
}

#[test]
fn versions_are_compared() {
    let old = Version(1 << 16);
    assert!(old.is_at_least(1, 0) && !old.is_at_least(1, 1));
    let middle = Version(1 << 16 | 3 << 8 | 1);
    assert!(middle.is_at_least(1, 3) && middle.is_at_least(1, 1) && !middle.is_at_least(1, 4));
    let new = Version(2 << 16);
    assert!(new.is_at_least(1, 4) && new.is_at_least(2, 0) && !new.is_at_least(2, 1));
    assert!(!Version(0).is_at_least(1, 0) && Version(u32::MAX).is_at_least(1, 3));
}

#[test]
fn the_status_is_read() {
    assert!(Status(u32::MAX).is_gone());
    let ready = Status(1);
    assert!(ready.is_ready() && !ready.is_fatal() && !ready.is_gone());
    assert!(Status(2).is_fatal() && !Status(2).is_ready());
    assert!(Status(2 << 2).is_shut_down());
    assert!(!Status(1 << 2).is_shut_down() && !Status(3 << 2).is_shut_down());
    assert_eq!(Status(0x11).subsystem_reset(), Some(0x10));
    assert_eq!(Status(0x0f).subsystem_reset(), None);
}

#[test]
fn the_doorbells_of_a_usual_controller() {
    let usual = parse(USUAL).unwrap();
    assert_eq!(usual.doorbell(0, Side::Submission, 0x2000), Ok(0x1000));
    assert_eq!(usual.doorbell(0, Side::Completion, 0x2000), Ok(0x1004));
    assert_eq!(usual.doorbell(3, Side::Completion, 0x2000), Ok(0x101c));
    let far = parse(USUAL | 3 << 32).unwrap();
    assert_eq!(far.doorbell(1, Side::Submission, 0x2000), Ok(0x1040));
    // A BAR without room for doorbells.
    let none = usual.doorbell(0, Side::Submission, 0x1000);
    assert_eq!(none, Err(Unsupported::Doorbells));
}

proptest! {
    #[test]
    fn any_capabilities(cap: u64, crto: Option<u32>) {
        if let Ok(capabilities) = parse(cap) {
            prop_assert!((2..=65536).contains(&capabilities.queue_entries()));
            let timeout = capabilities.ready_timeout(crto);
            prop_assert!((500..=MAX_READY_TIMEOUT).contains(&timeout));
            prop_assert!(timeout >= (cap >> 24 & 0xff) as u32 * 500);
            if let Some(crto) = crto {
                prop_assert!(timeout >= ((crto & 0xffff) * 500).min(MAX_READY_TIMEOUT));
            }
            prop_assert_eq!(capabilities.configuration().disabled() & 1, 0);
        }
    }

    /// Doorbells are aligned, in the BAR, and none is that of another queue.
    #[test]
    fn doorbells_are_in_the_bar(
        stride in 0..16u64,
        len in prop_oneof![0..0x10000usize, any::<usize>()],
        queues: (u16, u16),
    ) {
        let capabilities = parse(USUAL | stride << 32).unwrap();
        let mut found = Vec::new();
        for queue in [queues.0, queues.1] {
            for side in [Side::Submission, Side::Completion] {
                if let Ok(at) = capabilities.doorbell(queue, side, len) {
                    prop_assert!(at >= 0x1000 && at % 4 == 0 && at < len && len - at >= 4);
                    prop_assert!(queue != queues.1 || queues.0 != queues.1 || found.len() < 4);
                    if !found.contains(&at) {
                        found.push(at);
                    }
                }
            }
        }
        let different = if queues.0 == queues.1 { 2 } else { 4 };
        prop_assert!(found.len() <= different);
        if len > 0x1000 + (2 * 65536 + 1) * (4 << 15) {
            prop_assert_eq!(found.len(), different);
        }
    }

    #[test]
    fn admin_queues_are_of_the_size_asked_for(entries: u16) {
        let aqa = admin_queue_attributes(entries);
        let size = u32::from(entries).clamp(2, 4096) - 1;
        prop_assert_eq!((aqa & 0xfff, aqa >> 16 & 0xfff), (size, size));
        prop_assert_eq!(aqa & 0xf000_f000, 0);
    }
}
