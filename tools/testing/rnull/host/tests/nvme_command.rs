// SPDX-License-Identifier: GPL-2.0

//! Checks the commands that are sent to a controller, byte by byte.

/// The driver's modules, which name each other by `super`.
#[path = "../../../../../drivers/block/rnvme"]
mod rnvme {
    pub mod command;
    #[allow(dead_code)]
    pub mod data_pointer;
    #[allow(dead_code)]
    pub mod queue_entry;
    #[allow(dead_code)]
    pub mod user_command;
}

use proptest::prelude::*;
use rnvme::command::*;
use rnvme::data_pointer::DataPointer;

/// The bytes of an entry, as they are in memory.
fn in_memory(entry: &[u64]) -> Vec<u8> {
    entry.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The bytes of a command: the opcode, the identifier, the namespace, the two addresses, and what
/// is said of the rest, each value at its offset.
fn expected(
    opcode: u8,
    cid: u16,
    nsid: u32,
    data: DataPointer,
    rest: &[(usize, &[u8])],
) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[0] = opcode;
    // PSDT is 01b.
    bytes[1] = if data.is_sgl { 0x40 } else { 0 };
    let fixed: [(usize, &[u8]); 4] = [
        (2, &cid.to_le_bytes()),
        (4, &nsid.to_le_bytes()),
        (24, &data.first.to_le_bytes()),
        (32, &data.second.to_le_bytes()),
    ];
    for (at, value) in fixed.iter().chain(rest) {
        bytes[*at..at + value.len()].copy_from_slice(value);
    }
    bytes
}

fn pointers() -> impl Strategy<Value = DataPointer> {
    any::<(u64, u64, bool)>().prop_map(|(first, second, is_sgl)| DataPointer {
        first,
        second,
        is_sgl,
    })
}

proptest! {
    #[test]
    fn identify(cid: u16, data in pointers(), nsid: u32) {
        for (what, cns, nsid) in [
            (Identify::Namespace(nsid), 0, nsid),
            (Identify::Controller, 1, 0),
            (Identify::ActiveList(nsid), 2, nsid),
            (Identify::Descriptors(nsid), 3, nsid),
            (Identify::NvmLimits, 6, 0),
        ] {
            let entry = AdminCommand::Identify(what).entry(cid, data);
            prop_assert_eq!(in_memory(&entry), expected(6, cid, nsid, data, &[(40, &[cns])]));
        }
    }

    #[test]
    fn queues_are_created(cid: u16, id: u16, entries in 2..=1u32 << 16, address: u64, vector: u16) {
        let queue = NewQueue { id, entries, address };
        let memory = DataPointer { first: address, ..DataPointer::default() };
        let size = ((entries - 1) as u16).to_le_bytes();
        let number = id.to_le_bytes();
        let entry = AdminCommand::CreateCompletionQueue(queue, Some(vector)).entry(cid, DataPointer::default());
        let rest: [(usize, &[u8]); 4] =
            [(40, &number), (42, &size), (44, &[3]), (46, &vector.to_le_bytes())];
        prop_assert_eq!(in_memory(&entry), expected(5, cid, 0, memory, &rest));
        let entry = AdminCommand::CreateCompletionQueue(queue, None).entry(cid, DataPointer::default());
        let rest: [(usize, &[u8]); 3] = [(40, &number), (42, &size), (44, &[1])];
        prop_assert_eq!(in_memory(&entry), expected(5, cid, 0, memory, &rest));
        let entry = AdminCommand::CreateSubmissionQueue(queue).entry(cid, DataPointer::default());
        let rest: [(usize, &[u8]); 4] = [(40, &number), (42, &size), (44, &[1]), (46, &number)];
        prop_assert_eq!(in_memory(&entry), expected(1, cid, 0, memory, &rest));
    }

    #[test]
    fn the_number_of_queues_is_zero_based(cid: u16, count in 1u16.., result: u32) {
        let entry = AdminCommand::SetQueueCount(count).entry(cid, DataPointer::default());
        let count_in_memory = (count - 1).to_le_bytes();
        let rest: [(usize, &[u8]); 3] =
            [(40, &[7]), (44, &count_in_memory), (46, &count_in_memory)];
        prop_assert_eq!(in_memory(&entry), expected(9, cid, 0, DataPointer::default(), &rest));
        let granted = granted_queues(count, result);
        prop_assert!((1..=count).contains(&granted));
        prop_assert!(u32::from(granted) <= (result & 0xffff) + 1);
        prop_assert!(u32::from(granted) <= (result >> 16) + 1);
    }

    #[test]
    fn queues_are_deleted(cid: u16, id: u16) {
        for (command, opcode) in [
            (AdminCommand::DeleteSubmissionQueue(id), 0),
            (AdminCommand::DeleteCompletionQueue(id), 4),
        ] {
            let entry = command.entry(cid, DataPointer::default());
            let rest: [(usize, &[u8]); 1] = [(40, &id.to_le_bytes())];
            prop_assert_eq!(in_memory(&entry), expected(opcode, cid, 0, DataPointer::default(), &rest));
        }
    }

    #[test]
    fn commands_are_aborted(cid: u16, queue: u16, aborted: u16) {
        let command = AdminCommand::Abort { queue, cid: aborted };
        let rest: [(usize, &[u8]); 2] = [(40, &queue.to_le_bytes()), (42, &aborted.to_le_bytes())];
        let entry = command.entry(cid, DataPointer::default());
        prop_assert_eq!(in_memory(&entry), expected(8, cid, 0, DataPointer::default(), &rest));
    }

    #[test]
    fn events(cid: u16, data in pointers(), wanted: u32, page: u8, dwords in 1..=1024u32) {
        let entry = AdminCommand::SetEvents(wanted).entry(cid, DataPointer::default());
        let rest: [(usize, &[u8]); 2] = [(40, &[0xb]), (44, &wanted.to_le_bytes())];
        prop_assert_eq!(in_memory(&entry), expected(9, cid, 0, DataPointer::default(), &rest));
        let entry = AdminCommand::GetLog { page, bytes: 4 * dwords }.entry(cid, data);
        let zero_based = ((dwords - 1) as u16).to_le_bytes();
        let rest: [(usize, &[u8]); 2] = [(40, &[page]), (42, &zero_based)];
        prop_assert_eq!(in_memory(&entry), expected(2, cid, u32::MAX, data, &rest));
        let entry = event_request(cid);
        prop_assert_eq!(in_memory(&entry), expected(0xc, cid, 0, DataPointer::default(), &[]));
    }

    #[test]
    fn reads_and_writes(cid: u16, nsid: u32, data in pointers(), first: u64, count in 1..=1u32 << 16) {
        let blocks = Blocks { first, count };
        let zero_based = ((count - 1) as u16).to_le_bytes();
        let start = first.to_le_bytes();
        for (command, opcode, flags) in [
            (IoCommand::read(blocks), 2, 0),
            (IoCommand::write(blocks, false), 1, 0),
            (IoCommand::write(blocks, true), 1, 0x40),
            (IoCommand::write_zeroes(blocks, true), 8, 0),
            (IoCommand::write_zeroes(blocks, false), 8, 2),
        ] {
            let rest: [(usize, &[u8]); 3] = [(40, &start), (48, &zero_based), (51, &[flags])];
            let entry = command.entry(cid, nsid, data);
            prop_assert_eq!(in_memory(&entry), expected(opcode, cid, nsid, data, &rest));
        }
    }

    #[test]
    fn others(
        cid: u16,
        nsid: u32,
        data in pointers(),
        first: u64,
        count: u32,
        ranges in 1..=u32::from(MAX_DEALLOCATE_RANGES),
    ) {
        let entry = IoCommand::FLUSH.entry(cid, nsid, data);
        prop_assert_eq!(in_memory(&entry), expected(0, cid, nsid, data, &[]));
        let blocks = Blocks { first, count };
        let entry = IoCommand::deallocate(ranges).entry(cid, nsid, data);
        let rest: [(usize, &[u8]); 2] = [(40, &[(ranges - 1) as u8]), (44, &[4])];
        prop_assert_eq!(in_memory(&entry), expected(9, cid, nsid, data, &rest));
        let range = [&[0; 4][..], &count.to_le_bytes(), &first.to_le_bytes()].concat();
        prop_assert_eq!(in_memory(&deallocate_range(blocks)), range);
    }
}
