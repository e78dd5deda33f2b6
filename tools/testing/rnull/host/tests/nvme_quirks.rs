// SPDX-License-Identifier: GPL-2.0

//! Checks which devices are driven without something, or refused.

#[path = "../../../../../drivers/block/rnvme/quirks.rs"]
mod quirks;

use proptest::prelude::*;
use quirks::Quirks;

#[test]
fn devices_have_quirks() {
    // A device that is not listed.
    assert_eq!(Quirks::of(0xffff, 0xffff), Ok(Quirks::default()));
    let qemu = Quirks {
        has_bogus_ids: true,
        ..Quirks::default()
    };
    assert_eq!(Quirks::of(0x1b36, 0x0010), Ok(qemu));
    let samsung = Quirks {
        has_no_write_zeroes: true,
        has_bogus_ids: true,
        ..Quirks::default()
    };
    assert_eq!(Quirks::of(0x144d, 0xa80b), Ok(samsung));
    let lexar = Quirks {
        has_no_id_list: true,
        has_bogus_nqn: true,
        ..Quirks::default()
    };
    assert_eq!(Quirks::of(0x1b4b, 0x1092), Ok(lexar));
    assert!(Quirks::of(0x144d, 0xa821).is_err());
    assert!(Quirks::of(0x8086, 0x5845).is_err());
}

proptest! {
    /// Of a vendor, only the devices that are listed have quirks.
    #[test]
    fn others_of_the_vendor_have_none(device in 0x6100..0x8000u16) {
        for vendor in [0x144d, 0x1987, 0x2646, 0x1e4b, 0x1c58] {
            prop_assert_eq!(Quirks::of(vendor, device), Ok(Quirks::default()));
        }
    }
}
