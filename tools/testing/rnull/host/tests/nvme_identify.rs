// SPDX-License-Identifier: GPL-2.0

//! Checks what is made of the answers to Identify, which may contain anything.

#[path = "../../../../../drivers/block/rnvme"]
mod rnvme {
    pub(crate) mod identify;
}

use proptest::prelude::*;
use rnvme::identify::{
    active_list::ActiveList,
    answer::{
        Answer,
        SIZE, //
    },
    controller::{
        Controller,
        MAX_NAMESPACES,
        MAX_TRANSFER, //
    },
    descriptors::Identifiers,
    namespace::{
        AtomicWrites,
        Namespace,
        Unusable, //
    },
    nvm_limits::NvmLimits,
    text::Text, //
};

/// An answer with these bytes at these places, and zeros elsewhere.
fn answer(fields: &[(usize, &[u8])]) -> Answer {
    let mut answer = [0; SIZE];
    for (at, bytes) in fields {
        answer[*at..*at + bytes.len()].copy_from_slice(bytes);
    }
    answer
}

/// Any bytes.
fn noise() -> impl Strategy<Value = Answer> {
    prop::collection::vec(any::<u8>(), SIZE).prop_map(|bytes| bytes.try_into().unwrap())
}

/// A namespace of 2^20 blocks of 4 KiB, in the second of two formats.
const USUAL: &[(usize, &[u8])] = &[
    (2, &[0x10]),
    (10, &[0x10]),
    (25, &[1]),
    (26, &[1]),
    (128, &[0, 0, 9, 0]),
    (132, &[0, 0, 12, 0]),
];

fn usual_but(fields: &[(usize, &[u8])]) -> Answer {
    answer(&[USUAL, fields].concat())
}

#[test]
fn a_usual_namespace() {
    let namespace = Namespace::parse(&answer(USUAL)).unwrap();
    assert_eq!((namespace.block_shift, namespace.sectors), (12, 8 << 20));
    assert_eq!(namespace.preferred_write, None);
    assert_eq!((namespace.eui64, namespace.nguid), (None, None));
    assert!(!namespace.discard_zeroes && !namespace.zeroes_may_discard);
    let with_id = usual_but(&[(120, &[1; 8]), (104, &[2; 16]), (33, &[9])]);
    let namespace = Namespace::parse(&with_id).unwrap();
    assert_eq!(namespace.eui64, Some([1; 8]));
    assert_eq!(namespace.nguid, Some([2; 16]));
    assert!(namespace.discard_zeroes && namespace.zeroes_may_discard);
}

#[test]
fn unusable_namespaces_are_refused() {
    let parse = |fields: &[(usize, &[u8])]| Namespace::parse(&usual_but(fields)).unwrap_err();
    assert_eq!(parse(&[(2, &[0])]), Unusable::Inactive);
    // More can be allocated than there is.
    assert_eq!(parse(&[(10, &[0x11])]), Unusable::Capacity);
    // The highest number of blocks, which is beyond what bytes can be counted in.
    assert_eq!(parse(&[(0, &[0xff; 8])]), Unusable::Capacity);
    for shift in [0, 8, 17, 63, 255] {
        assert_eq!(parse(&[(134, &[shift])]), Unusable::BlockSize);
    }
    for index in [2, 15, 0x20, 0x6f] {
        assert_eq!(parse(&[(26, &[index])]), Unusable::Format);
    }
    // Beyond the table, though the number of formats reaches there.
    let table_end = [(25, &[0xff][..]), (82, &[0xff]), (26, &[0x6f])];
    assert_eq!(parse(&table_end), Unusable::BlockSize);
    assert_eq!(parse(&[(132, &[8, 0])]), Unusable::Metadata);
}

#[test]
fn preferences_that_overflow_are_left_out() {
    let most = [
        (24, &[0x10][..]),
        (64, &[0xff; 10]),
        (134, &[16]),
        (2, &[0, 0, 0, 0]),
        (0, &[1]),
        (8, &[0; 8]),
    ];
    let namespace = Namespace::parse(&usual_but(&most)).unwrap();
    assert_eq!(namespace.preferred_write, None);
    assert_eq!(namespace.optimal_write, None);
    assert_eq!(namespace.preferred_discard, None);
    let some = usual_but(&[(24, &[0x10]), (64, &[7, 0]), (68, &[15, 0]), (72, &[1, 0])]);
    let namespace = Namespace::parse(&some).unwrap();
    assert_eq!(namespace.preferred_write, Some(32 << 10));
    assert_eq!(namespace.preferred_discard, Some(64 << 10));
    assert_eq!(namespace.optimal_write, Some(8 << 10));
    // A zero-based number, but of which 0 says nothing.
    let none = usual_but(&[(24, &[0x10])]);
    assert_eq!(Namespace::parse(&none).unwrap().optimal_write, None);
}

/// A disk is kept while its namespace is compatible, so I/O must not change its meaning.
#[test]
fn what_may_change_below_a_disk() {
    let parse = |fields: &[(usize, &[u8])]| Namespace::parse(&usual_but(fields)).unwrap();
    let before = parse(&[]);
    for may_change in [
        &[(2, &[0x20][..])][..],
        &[(24, &[0x10]), (64, &[7]), (68, &[15]), (72, &[1])],
    ] {
        let after = parse(may_change);
        assert_ne!(before, after);
        assert!(before.is_compatible_with(&after) && after.is_compatible_with(&before));
    }
    for must_not_change in [
        // The size of a block; then what is discarded, what is atomic, which namespace it is.
        &[(26, &[0][..])][..],
        &[(33, &[1])],
        &[(33, &[8])],
        &[(24, &[2]), (36, &[7])],
        &[(120, &[1; 8])],
        &[(104, &[2; 16])],
    ] {
        let after = parse(must_not_change);
        assert!(!before.is_compatible_with(&after) && !after.is_compatible_with(&before));
    }
}

#[test]
fn atomic_writes() {
    let parse =
        |fields: &[(usize, &[u8])]| Namespace::parse(&usual_but(fields)).unwrap().atomic_writes;
    let some = |max, boundary| Some(AtomicWrites { max, boundary });
    let block = some(4096, 0);
    assert_eq!(parse(&[]), block);
    // Without the feature the fields are of no meaning, and without the length the boundary is.
    assert_eq!(parse(&[(36, &[7]), (44, &[7])]), block);
    assert_eq!(parse(&[(24, &[2]), (44, &[7])]), block);
    assert_eq!(parse(&[(24, &[2]), (36, &[7])]), some(32 << 10, 0));
    assert_eq!(
        parse(&[(24, &[2]), (36, &[5]), (44, &[15])]),
        some(24 << 10, 64 << 10)
    );
    assert_eq!(some(24 << 10, 0).unwrap().max_power_of_two(), 16 << 10);
    // The boundaries are elsewhere, not at powers of two, within a write.
    assert_eq!(parse(&[(24, &[2]), (36, &[7]), (42, &[1])]), None);
    assert_eq!(parse(&[(24, &[2]), (36, &[7]), (44, &[8])]), None);
    assert_eq!(parse(&[(24, &[2]), (36, &[8]), (44, &[7])]), None);
    // More than 32 bits can count.
    let most = [
        (24, &[2][..]),
        (36, &[0xff; 2]),
        (44, &[0xff; 2]),
        (134, &[16]),
        (0, &[1, 0, 0, 0]),
        (8, &[0; 8]),
    ];
    assert_eq!(parse(&most), some(1 << 31, 1 << 31));
}

#[test]
fn limits_of_commands() {
    let limits = |fields: &[(usize, &[u8])]| NvmLimits::parse(&answer(fields));
    assert_eq!(limits(&[]), NvmLimits::default());
    let some = limits(&[(1, &[5]), (4, &[0xff, 0x3f, 0, 0])]);
    assert_eq!(some.write_zeroes, Some(128 << 10));
    assert_eq!(some.deallocate, Some(16383));
    assert_eq!(some.deallocate_ranges, None);
    assert_eq!(limits(&[(3, &[255])]).deallocate_ranges, Some(255));
    for (exponent, bytes) in [(1, 8 << 10), (19, 1 << 31), (20, 1 << 31), (255, 1 << 31)] {
        assert_eq!(limits(&[(1, &[exponent])]).write_zeroes, Some(bytes));
    }
    assert_eq!(limits(&[(4, &[0xff; 4])]).deallocate, Some(u32::MAX));
}

#[test]
fn a_usual_controller() {
    let data = answer(&[
        (4, b"  serial            "),
        (24, b"A model\0with more behind"),
        (64, b"1.0\n    "),
        (77, &[5]),
        (78, &[0x34, 0x12]),
        (88, &[0x41, 0x42, 0x0f, 0]),
        (92, &[0, 3, 0, 0]),
        (128, &[1, 0, 2, 0, 0xff, 0xff]),
        (258, &[3]),
        (512, &[0x66, 0x44]),
        (516, &[8]),
        (520, &[0x0c]),
        (525, &[7]),
        (536, &[2, 0, 1]),
    ]);
    let controller = Controller::parse(&data, 6, 4).unwrap();
    assert_eq!(controller.serial.as_str(), "serial");
    assert_eq!(controller.model.as_str(), "A model");
    assert_eq!(controller.firmware.as_str(), "1.0?");
    assert_eq!(
        (controller.id, controller.max_transfer),
        (0x1234, 128 << 10)
    );
    assert_eq!((controller.max_namespaces, controller.highest_nsid), (8, 8));
    assert!(controller.has_write_cache && controller.has_sgl);
    assert!(controller.optional.dataset_management && controller.optional.write_zeroes);
    assert_eq!(
        (controller.abort_limit, controller.shutdown_timeout),
        (4, 1001)
    );
    assert_eq!(controller.retry_delays, [100, 200, 6_553_500]);
    assert_eq!(controller.optional_events, 0x300);
    assert_eq!(Controller::parse(&data, 7, 4), None);
    assert_eq!(Controller::parse(&data, 6, 5), None);
    assert_eq!(Controller::parse(&data, 5, 4), None);
}

#[test]
fn the_descriptors_of_a_namespace() {
    let mut list = vec![1, 8, 0, 0];
    list.extend([0xe1; 8]);
    // An unknown one is left out.
    list.extend([9, 3, 0, 0, 1, 2, 3]);
    list.extend([3, 16, 0, 0]);
    list.extend([0xc3; 16]);
    list.extend([4, 1, 0, 0, 2]);
    let found = Identifiers::parse(&answer(&[(0, &list)]));
    assert_eq!(found.eui64, Some([0xe1; 8]));
    assert_eq!(found.uuid, Some([0xc3; 16]));
    assert_eq!((found.nguid, found.command_set), (None, Some(2)));
    assert!(!found.is_nvm());
    assert!(Identifiers::default().is_nvm());
    // The list ends where an entry is malformed.
    for kind in 1..5 {
        for len in [0, 2, 255] {
            let mut list = vec![kind, len, 0, 0];
            list.resize(4 + usize::from(len), 1);
            list.extend([4, 1, 0, 0, 2]);
            let found = Identifiers::parse(&answer(&[(0, &list)]));
            assert_eq!(found, Identifiers::default());
        }
    }
}

#[test]
fn an_entry_across_the_end_is_left_out() {
    // Entries of an unknown type fill the answer but for so many bytes.
    for rest in 0..24 {
        let mut list = Vec::new();
        while list.len() + 4 + 255 + 4 + 255 < SIZE - rest {
            list.extend([9, 255, 0, 0]);
            list.resize(list.len() + 255, 9);
        }
        let len = (SIZE - rest - list.len() - 4) / 2;
        list.extend([9, len as u8, 0, 0]);
        list.resize(list.len() + len, 9);
        list.extend([9, (SIZE - rest - list.len() - 4) as u8, 0, 0]);
        list.resize(SIZE - rest, 9);
        list.extend([3, 16, 0, 0].iter().take(rest));
        list.resize(SIZE, 7);
        let found = Identifiers::parse(&list.try_into().unwrap());
        assert_eq!(found.uuid, (rest >= 20).then_some([7; 16]));
    }
}

/// The numbers that a walk over these answers visits, and how many answers it took.
fn walk(most: u32, answers: impl IntoIterator<Item = Answer>) -> (Vec<u32>, usize) {
    let (mut list, mut found, mut asked) = (ActiveList::new(most), Vec::new(), 0);
    for answer in answers {
        asked += 1;
        let visit = |nsid| {
            found.push(nsid);
            Ok::<(), ()>(())
        };
        if !list.walk(&answer, visit).unwrap() {
            break;
        }
        assert_eq!(list.after(), *found.last().unwrap());
    }
    (found, asked)
}

/// An answer that lists these namespaces.
fn listing(numbers: &[u32]) -> Answer {
    let bytes: Vec<_> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    answer(&[(0, &bytes)])
}

#[test]
fn the_list_of_namespaces() {
    assert_eq!(walk(1024, [listing(&[])]), (vec![], 1));
    assert_eq!(walk(1024, [listing(&[1, 5, 9])]), (vec![1, 5, 9], 1));
    // Not sorted, repeated.
    assert_eq!(walk(1024, [listing(&[5, 1, 9])]), (vec![5], 1));
    assert_eq!(walk(1024, [listing(&[5, 5, 9])]), (vec![5], 1));
    // The number that means all namespaces.
    assert_eq!(walk(1024, [listing(&[u32::MAX])]), (vec![], 1));
    // Two answers, of which the second repeats the first.
    let full: Vec<_> = (1..=1024).collect();
    let (found, asked) = walk(5000, [listing(&full), listing(&full), listing(&full)]);
    assert_eq!((found, asked), (full.clone(), 2));
    // No more than agreed.
    assert_eq!(walk(1024, [listing(&full), listing(&full)]).1, 1);
    assert_eq!(walk(3, [listing(&full)]).0, [1, 2, 3]);
    // After an error the walk is over.
    let mut list = ActiveList::new(100);
    assert_eq!(list.walk(&listing(&[1, 2]), Err), Err(1));
    let again = list.walk(&listing(&[2]), |_| Err(()));
    assert_eq!(again, Ok(false));
}

proptest! {
    /// All bytes of an atomic write are between two multiples of the boundary.
    #[test]
    fn atomic_writes_do_not_cross(max in 1..5000u32, shift in 13..16u32, first in 0..100_000u64, len in 1..10_000u32) {
        let boundary = 1 << shift;
        let place = |byte: u64| byte / u64::from(boundary);
        let is_within = place(first) == place(first + u64::from(len) - 1);
        let none = AtomicWrites { max, boundary: 0 };
        prop_assert_eq!(none.contains(first, len), len <= max);
        let some = AtomicWrites { max, boundary };
        prop_assert_eq!(some.contains(first, len), len <= max && is_within);
    }

    #[test]
    fn atomic_writes_are_limits_of_a_disk(answer in noise(), shift in 9..17u8) {
        let mut answer = answer;
        // A usual format and capacity.
        answer[0..16].copy_from_slice(&[[0xff, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat());
        answer[26] = 0;
        answer[128..132].copy_from_slice(&[0, 0, shift, 0]);
        if let Some(atomic) = Namespace::parse(&answer).unwrap().atomic_writes {
            prop_assert!(atomic.max >= 1 << shift);
            prop_assert!(atomic.boundary == 0 || atomic.boundary.is_power_of_two());
            prop_assert!(atomic.boundary == 0 || atomic.boundary >= atomic.max);
            let most = atomic.max_power_of_two();
            prop_assert!(most <= atomic.max && u64::from(atomic.max) < 2 * u64::from(most));
        }
    }

    /// The walk goes upwards and ends, whatever each of endless answers contains.
    #[test]
    fn any_list_of_namespaces(first in noise(), step in 1..3u32, most in 0..5000u32) {
        let endless = (0..).map(|page| {
            let numbers: Vec<_> = (0..1024).map(|n| (page * 1024 + n) * step + 1).collect();
            listing(&numbers)
        });
        for (found, asked) in [walk(most, [first]), walk(most, endless)] {
            prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(found.len() <= most as usize);
            prop_assert!(asked <= found.len() / 1024 + 1);
        }
    }

    #[test]
    fn any_descriptors(data in noise(), shorts in prop::collection::vec(0..20u8, SIZE)) {
        Identifiers::parse(&data);
        Identifiers::parse(&shorts.try_into().unwrap());
    }

    #[test]
    fn any_namespace(
        mut data in noise(),
        blocks in prop_oneof![0..1u64 << 40, any::<u64>()],
        shift: u8,
        is_usual: bool,
    ) {
        data[..8].copy_from_slice(&blocks.to_le_bytes());
        if is_usual {
            data[8..16].copy_from_slice(&(blocks / 2).to_le_bytes());
            data[26] &= 0xf;
            data[25] = 15;
            for entry in data[128..192].chunks_exact_mut(4) {
                entry.copy_from_slice(&[0, 0, shift, 0]);
            }
        }
        match Namespace::parse(&data) {
            Ok(namespace) => {
                prop_assert!((9..=16).contains(&namespace.block_shift));
                prop_assert!(namespace.sectors > 0 && namespace.sectors <= i64::MAX as u64 / 512);
                let block = 1 << (namespace.block_shift - 9);
                prop_assert_eq!(namespace.sectors % block, 0);
                prop_assert_eq!(namespace.sectors / block, blocks);
                for length in [
                    namespace.preferred_write,
                    namespace.optimal_write,
                    namespace.preferred_discard,
                ] {
                    prop_assert_eq!(length.unwrap_or(0) % (1 << namespace.block_shift), 0);
                    prop_assert_ne!(length, Some(0));
                }
            }
            Err(Unusable::Inactive) => prop_assert_eq!(blocks, 0),
            Err(Unusable::BlockSize) if is_usual => prop_assert!(!(9..=16).contains(&shift)),
            Err(Unusable::Capacity) if is_usual => prop_assert!(blocks > u64::MAX >> (shift + 1)),
            Err(unusable) => prop_assert!(!is_usual, "{}", unusable.reason()),
        }
    }

    #[test]
    fn any_controller(mut data in noise(), mdts: u8, sgls: u8, namespaces: (u32, u32)) {
        data[77] = mdts;
        data[536] = sgls;
        data[512..514].copy_from_slice(&[0x66, 0x44]);
        data[516..520].copy_from_slice(&namespaces.0.to_le_bytes());
        data[540..544].copy_from_slice(&namespaces.1.to_le_bytes());
        let controller = Controller::parse(&data, 6, 4).unwrap();
        let most = controller.max_transfer;
        prop_assert!(most.is_power_of_two() && (8192..=MAX_TRANSFER).contains(&most));
        prop_assert!(mdts == 0 || most == MAX_TRANSFER || most == 4096 << mdts);
        prop_assert!((1..=MAX_NAMESPACES).contains(&controller.max_namespaces));
        // 11b is reserved.
        prop_assert_eq!(controller.has_sgl, [1, 2].contains(&(sgls & 3)));
    }

    #[test]
    fn any_text(bytes: [u8; 20]) {
        let text = Text::new(bytes);
        let shown = text.to_string();
        prop_assert_eq!(&shown, text.as_str());
        prop_assert!(shown.len() <= 20 && shown.trim() == shown);
        prop_assert!(shown.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(20);
        let is_blank = bytes[..end].iter().all(|&byte| byte == b' ');
        prop_assert_eq!(shown.is_empty(), is_blank);
    }
}
