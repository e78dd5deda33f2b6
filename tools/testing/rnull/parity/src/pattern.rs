// SPDX-License-Identifier: GPL-2.0

//! Bytes that tell where they belong.

/// What memory holds before a disk is read into it.
pub const UNTOUCHED: u8 = 0xee;

/// How many writes can be told apart.
pub const SEEDS: u32 = 250;

/// The eight bytes from `8 * n` on of a disk that was written with a seed, the first of them lowest.
fn word(n: u64, seed: u32) -> u64 {
    let x = (n + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(u64::from(seed).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The byte at an offset.
fn byte(offset: u64, seed: u32) -> u8 {
    (word(offset / 8, seed) >> (offset % 8 * 8)) as u8
}

/// The bytes of a write.
pub fn bytes(offset: u64, len: usize, seed: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 16);
    let skip = (offset % 8) as usize;
    let mut n = offset / 8;
    while bytes.len() < skip + len {
        bytes.extend_from_slice(&word(n, seed).to_le_bytes());
        n += 1;
    }
    bytes.truncate(skip + len);
    bytes.drain(..skip);
    bytes
}

/// Whether these are the bytes of a write, from an offset on that eight divides.
pub fn are(bytes: &[u8], offset: u64, seed: u32) -> bool {
    let mut words = (offset / 8..).zip(bytes.chunks(8));
    words.all(|(n, chunk)| *chunk == word(n, seed).to_le_bytes()[..chunk.len()])
}

/// What bytes read at an offset are: runs of zeros, of memory that was not touched, of writes.
pub fn describe(offset: u64, bytes: &[u8]) -> String {
    let mut runs: Vec<(String, usize)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (name, len) = longest(offset + at as u64, &bytes[at..]);
        match runs.last_mut() {
            Some((last, length)) if *last == name => *length += len,
            _ => runs.push((name, len)),
        }
        at += len;
    }
    let runs: Vec<_> = runs
        .iter()
        .map(|(name, len)| format!("{len}*{name}"))
        .collect();
    runs.join("+")
}

/// The longest run with which the bytes begin.
fn longest(offset: u64, bytes: &[u8]) -> (String, usize) {
    let same = |value| bytes.iter().take_while(|&&byte| byte == value).count();
    let seeded = |seed| {
        let right = |(i, b): &(usize, &u8)| **b == byte(offset + *i as u64, seed);
        bytes.iter().enumerate().take_while(right).count()
    };
    let constants = [
        ("zero", same(0)),
        ("untouched", same(UNTOUCHED)),
        ("ff", same(0xff)),
    ];
    let (name, len) = constants
        .into_iter()
        .max_by_key(|(_, len)| *len)
        .expect("there are some");
    // A short run may be chance, a longer one is certain.
    if len >= 8 {
        return (name.into(), len);
    }
    let (seed, length) = (1..=SEEDS)
        .map(|seed| (seed, seeded(seed)))
        .max_by_key(|(_, len)| *len)
        .expect("there are some");
    if length > len && length >= 4 {
        (format!("#{seed}"), length)
    } else if len > 1 {
        (name.into(), len)
    } else {
        ("other".into(), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_the_same_in_words_and_in_bytes() {
        for (offset, len) in [(0, 512), (512, 20), (3, 4), (7, 1), (13, 100), (8, 0)] {
            let right: Vec<u8> = (offset..).take(len).map(|at| byte(at, 7)).collect();
            assert_eq!(bytes(offset, len, 7), right);
            if offset % 8 == 0 {
                assert!(are(&right, offset, 7) && (len == 0 || !are(&right, offset, 8)));
            }
        }
    }
}
