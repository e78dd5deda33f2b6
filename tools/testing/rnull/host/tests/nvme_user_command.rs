// SPDX-License-Identifier: GPL-2.0

//! Checks the commands of users byte by byte, and who may send which.

/// The driver's modules, which name each other by `super`.
#[path = "../../../../../drivers/block/rnvme"]
mod rnvme {
    #[allow(dead_code)]
    pub mod data_pointer;
    pub mod effects;
    #[allow(dead_code)]
    pub mod queue_entry;
    pub mod user_command;
}

use proptest::collection::vec;
use proptest::prelude::*;
use rnvme::data_pointer::DataPointer;
use rnvme::effects::*;
use rnvme::user_command::*;

/// The commands that leave the queues and the memory of the driver.
const OF_DRIVER: [u8; 8] = [0x00, 0x01, 0x04, 0x05, 0x0c, 0x45, 0x7c, 0x7f];

fn command() -> impl Strategy<Value = UserCommand> {
    any::<(u8, u32, [u32; 2], [u32; 6])>().prop_map(|(opcode, nsid, low, high)| UserCommand {
        opcode,
        nsid,
        low,
        high,
    })
}

fn opened() -> impl Strategy<Value = Opened> {
    any::<(bool, bool)>().prop_map(|(for_writing, is_partition)| Opened {
        for_writing,
        is_partition,
    })
}

/// A log with these words for I/O commands.
fn log(words: &[u32]) -> [u8; 4096] {
    let mut log = [0; 4096];
    for (at, word) in log[1024..2048].chunks_exact_mut(4).zip(words) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    log
}

proptest! {
    #[test]
    fn parts_are_the_time(time: u32, most in 1..100_000_000u32) {
        let mut parts = Parts::new(time, most);
        let mut count = 1u64;
        while parts.begin_next() {
            count += 1;
            if count == 100_000 {
                break;
            }
        }
        prop_assert!(parts.len <= most);
        prop_assert_eq!(parts.len == 0, time == 0);
        if count < 100_000 {
            // Not less, and longer by rounding only.
            let all = u64::from(parts.len) * count;
            prop_assert!((u64::from(time)..u64::from(time) + count).contains(&all));
        }
    }

    #[test]
    fn entries_have_no_address_of_the_user(
        bytes in vec(any::<u8>(), COMMAND64_SIZE),
        cid: u16,
        first: u64,
        second: u64,
        is_sgl: bool,
    ) {
        let narrow: [u8; COMMAND_SIZE] = bytes[..COMMAND_SIZE].try_into().unwrap();
        let wide: [u8; COMMAND64_SIZE] = bytes[..].try_into().unwrap();
        let arguments = Arguments::parse(&narrow);
        prop_assert_eq!(arguments, Arguments::parse(&wide));
        let ne = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        prop_assert_eq!(arguments.flags, bytes[1]);
        prop_assert_eq!((arguments.metadata_len, arguments.len), (ne(32), ne(36)));
        prop_assert_eq!(arguments.timeout, ne(64));
        prop_assert_eq!(arguments.address.to_ne_bytes(), &bytes[24..32]);
        prop_assert_eq!(arguments.metadata.to_ne_bytes(), &bytes[16..24]);

        let entry = arguments.command.entry(cid, DataPointer { first, second, is_sgl });
        let entry: Vec<u8> = entry.iter().flat_map(|word| word.to_le_bytes()).collect();
        let dword = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
        let psdt = u32::from(is_sgl) << 14;
        prop_assert_eq!(dword(0), u32::from(bytes[0]) | psdt | u32::from(cid) << 16);
        for (at, user) in [(4, 4), (8, 8), (12, 12), (40, 40), (44, 44), (48, 48), (52, 52),
            (56, 56), (60, 60)]
        {
            prop_assert_eq!(dword(at), ne(user));
        }
        prop_assert_eq!(&entry[16..24], &[0; 8]);
        prop_assert_eq!(&entry[24..32], &first.to_le_bytes());
        prop_assert_eq!(&entry[32..40], &second.to_le_bytes());
    }

    #[test]
    fn blocks_are_read_written_or_compared(
        bytes in vec(any::<u8>(), IO_SIZE),
        opcode in 0..8u8,
        flags in 0..2u8,
        has_metadata: bool,
        nsid: u32,
        shift in 9..17u32,
    ) {
        let mut bytes: [u8; IO_SIZE] = bytes[..].try_into().unwrap();
        (bytes[0], bytes[1]) = (opcode, flags);
        if !has_metadata {
            bytes[8..16].fill(0);
        }
        let control = u16::from_ne_bytes([bytes[2], bytes[3]]);
        let count = u64::from(u16::from_ne_bytes([bytes[4], bytes[5]])) + 1;
        let is_valid = matches!(opcode, 1 | 2 | 5)
            && flags == 0
            && (!has_metadata || bytes[8..16] == [0; 8] || control & 1 << 13 == 0)
            && count << shift <= u32::MAX.into();
        let parsed = Arguments::parse_io(&bytes, nsid, shift);
        prop_assert_eq!(parsed.is_some(), is_valid);
        let Some(parsed) = parsed else {
            return Ok(());
        };
        prop_assert_eq!(u64::from(parsed.len), count << shift);
        prop_assert_eq!(parsed.command.io_moves(shift), Moves::AtMost(count << shift));
        prop_assert_eq!(parsed.address.to_ne_bytes(), &bytes[16..24]);
        let entry = parsed.command.entry(0, DataPointer::default());
        prop_assert_eq!(entry[0], u64::from(opcode) | u64::from(nsid) << 32);
        prop_assert_eq!(entry[5].to_ne_bytes(), &bytes[24..32]);
        let ne16 = |at: usize| u64::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        prop_assert_eq!(entry[6] & 0xffff_ffff, ne16(4) | ne16(2) << 16);
        prop_assert_eq!(entry[7] >> 32, ne16(40) | ne16(42) << 16);
    }

    #[test]
    fn what_the_driver_relies_on_is_refused(mut command in command(), index in 0..8usize) {
        command.opcode = OF_DRIVER[index];
        prop_assert_eq!(Effects::admin_permission(&command), Permission::Refused);
        command.opcode = 0x09;
        for feature in [0x07, 0x0c, 0x0d, 0x0f, 0x16] {
            command.high[0] = command.high[0] & !0xff | feature;
            prop_assert_eq!(Effects::admin_permission(&command), Permission::Refused);
        }
    }

    #[test]
    fn others_identify_only(mut command in command(), cns: u8) {
        command.high[0] = command.high[0] & !0xff | u32::from(cns);
        let is_granted = Effects::admin_permission(&command) == Permission::Granted;
        prop_assert!(!is_granted || command.opcode == 6);
        command.opcode = 6;
        let is_granted = Effects::admin_permission(&command) == Permission::Granted;
        prop_assert_eq!(is_granted, matches!(cns, 0 | 1 | 5 | 6 | 8));
    }

    #[test]
    fn commands_for_namespaces(
        command in command(),
        words in vec(any::<u32>(), 256),
        opened in opened(),
        shift in 9..17u32,
    ) {
        let none = Effects::parse(None).io_permission(&command, shift, opened);
        prop_assert_ne!(none, Permission::Granted);
        let effects = Effects::parse(Some(&log(&words)));
        let word = words[usize::from(command.opcode)];
        match effects.io_permission(&command, shift, opened) {
            Permission::Refused => prop_assert_eq!(command.opcode, 0x7f),
            Permission::Administrator => (),
            Permission::Granted => {
                prop_assert!(!opened.is_partition && command.opcode < 0x80);
                prop_assert!(word & 1 != 0 && word & 0x1c == 0);
                let changes = command.opcode & 1 != 0 || word & 2 != 0;
                prop_assert!(opened.for_writing || !changes);
                prop_assert!(command.io_moves(shift) != Moves::Unknown);
            }
        }
    }

    #[test]
    fn a_controller_that_supports_all_lets_others_read(
        mut command in command(),
        for_writing: bool,
        shift in 9..17u32,
    ) {
        let effects = Effects::parse(Some(&log(&[1; 256])));
        let opened = Opened { for_writing, is_partition: false };
        for (opcode, needs_writing) in
            [(0, false), (1, true), (2, false), (5, true), (8, true), (9, true), (12, false)]
        {
            command.opcode = opcode;
            let permission = effects.io_permission(&command, shift, opened);
            let expected = if needs_writing && !for_writing {
                Permission::Administrator
            } else {
                Permission::Granted
            };
            prop_assert_eq!(permission, expected);
        }
    }

    #[test]
    fn lengths(mut command in command(), shift in 9..17u32) {
        // Of no directive that moves nothing.
        command.high[1] |= 0x80;
        let high = command.high;
        for (opcode, bytes) in [
            (0x06, 4096),
            (0x02, (u64::from(high[0] >> 16) | u64::from(high[1] & 0xffff) << 16) * 4 + 4),
            (0x11, u64::from(high[0]) * 4 + 4),
            (0x19, u64::from(high[0]) * 4 + 4),
            (0x1a, u64::from(high[0]) * 4 + 4),
            (0x80, 0),
            (0x81, high[1].into()),
            (0x82, high[1].into()),
        ] {
            command.opcode = opcode;
            prop_assert_eq!(command.admin_moves(), Moves::AtMost(bytes));
        }
        for (opcode, bytes) in [
            (0x00, 0),
            (0x01, (u64::from(high[2] & 0xffff) + 1) << shift),
            (0x02, (u64::from(high[2] & 0xffff) + 1) << shift),
            (0x05, (u64::from(high[2] & 0xffff) + 1) << shift),
            (0x08, 0),
            (0x09, u64::from(high[0] & 0xff) * 16 + 16),
            (0x0c, 0),
        ] {
            command.opcode = opcode;
            prop_assert_eq!(command.io_moves(shift), Moves::AtMost(bytes));
        }
        command.opcode = 0xc0;
        prop_assert_eq!(command.admin_moves(), Moves::Unknown);
        prop_assert_eq!(command.io_moves(shift), Moves::Unknown);
    }
}

#[test]
fn directives() {
    let moves = |opcode, operation| {
        let high = [0, operation, 0, 0, 0, 0];
        let command = UserCommand {
            opcode,
            high,
            ..UserCommand::default()
        };
        command.admin_moves()
    };
    // Enable; Release Identifier, Release Resources; Allocate Resources.
    for (opcode, operation) in [(0x19, 0x001), (0x19, 0x101), (0x19, 0x102), (0x1a, 0x103)] {
        assert_eq!(moves(opcode, operation), Moves::AtMost(0));
    }
    // Return Parameters, Get Status.
    for operation in [0x001, 0x101, 0x102] {
        assert_eq!(moves(0x1a, operation), Moves::AtMost(4));
    }
}

#[test]
fn commands_that_have_to_be_alone() {
    let of = |opcode| UserCommand {
        opcode,
        ..UserCommand::default()
    };
    let mut log = [0; 4096];
    let alone = (1u32 << 16).to_le_bytes();
    let alone_or_not = (1u32 << 16 | 1 << 14).to_le_bytes();
    // Security Send and Receive, Sanitize, two of vendors.
    for (opcode, effects) in [
        (0x81, alone),
        (0x82, alone),
        (0x84, alone_or_not),
        (0xc0, alone),
        (0xc1, alone_or_not),
    ] {
        log[4 * opcode..4 * opcode + 4].copy_from_slice(&effects);
    }
    let effects = Effects::parse(Some(&log));
    for (opcode, excludes_io) in [
        (0x81, true),
        (0x82, false),
        (0x84, true),
        (0xc0, true),
        (0xc1, false),
    ] {
        assert_eq!(effects.excludes_io(&of(opcode)), excludes_io, "{opcode:#x}");
    }
}

#[test]
fn format_and_namespaces_are_looked_for_again() {
    let effects = Effects::parse(None);
    let of = |opcode| UserCommand {
        opcode,
        ..UserCommand::default()
    };
    assert!(effects.aftermath(&of(0x80)).scan && effects.aftermath(&of(0x84)).scan);
    // Format, Sanitize, Namespace Management and Attachment, whatever the log says.
    for opcode in 0..=255 {
        let excludes_io = matches!(opcode, 0x80 | 0x84 | 0x0d | 0x15);
        let by_itself = Effects::parse(None).excludes_io(&of(opcode));
        assert_eq!(by_itself, excludes_io, "{opcode:#x}");
    }
    assert!(!effects.aftermath(&of(0x06)).scan);
    let mut log = [0; 4096];
    // Namespace Attachment changes which namespaces there are; 0x86 changes the controller.
    log[4 * 0x15] = 1 << 3;
    log[4 * 0x86] = 1 << 4;
    let effects = Effects::parse(Some(&log));
    assert!(effects.aftermath(&of(0x15)).scan);
    assert!(effects.aftermath(&of(0x86)).tell && !effects.aftermath(&of(0x86)).scan);
}
