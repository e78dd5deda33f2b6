// SPDX-License-Identifier: GPL-2.0

//! Data that depends on the offset on the disk, but also on the write.

/// The bytes of memory before a disk is read into it.
pub const UNTOUCHED: u8 = 0xee;

/// The largest seed.
const SEEDS: u32 = 250;

/// The eight bytes from `8 * n` on of a disk that was written with a seed, little-endian.
fn word(n: u64, seed: u32) -> [u8; 8] {
    let x = (n + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(u64::from(seed).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    (x ^ (x >> 29))
        .wrapping_mul(0x94d0_49bb_1331_11eb)
        .to_le_bytes()
}

/// The bytes from an offset on.
fn stream(offset: u64, seed: u32) -> impl Iterator<Item = u8> {
    let words = (offset / 8..).flat_map(move |n| word(n, seed));
    words.skip((offset % 8) as usize)
}

/// The bytes of a write.
pub fn bytes(offset: u64, len: usize, seed: u32) -> Vec<u8> {
    stream(offset, seed).take(len).collect()
}

/// Whether these are the bytes of a write, from an offset on that is a multiple of eight.
pub fn are(bytes: &[u8], offset: u64, seed: u32) -> bool {
    let mut words = (offset / 8..).zip(bytes.chunks(8));
    words.all(|(n, chunk)| *chunk == word(n, seed)[..chunk.len()])
}

/// Describes the bytes read at an offset as runs of zeros, of untouched memory, of writes.
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
    let runs = runs.iter().map(|(name, len)| format!("{len}*{name}"));
    runs.collect::<Vec<_>>().join("+")
}

/// The longest run with which the bytes begin.
fn longest(offset: u64, bytes: &[u8]) -> (String, usize) {
    let constants = [("zero", 0), ("untouched", UNTOUCHED), ("ff", 0xff)].map(|(name, value)| {
        let len = bytes.iter().take_while(|&&byte| byte == value).count();
        (len, name.to_string())
    });
    let (len, name) = constants.into_iter().max().expect("there are some");
    // A short run may be chance, a longer one is certain.
    if len >= 8 {
        return (name, len);
    }
    let seeded = |seed| {
        let pairs = bytes.iter().zip(stream(offset, seed));
        (pairs.take_while(|(a, b)| *a == b).count(), seed)
    };
    match (1..=SEEDS).map(seeded).max().expect("there are some") {
        (length, seed) if length > len && length >= 4 => (format!("#{seed}"), length),
        _ if len > 1 => (name, len),
        _ => ("other".into(), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_depends_on_offset_and_seed() {
        let right = bytes(0, 1024, 7);
        for (offset, len) in [(0, 512), (512, 20), (3, 4), (7, 1), (13, 100), (8, 0)] {
            let part = &right[offset..offset + len];
            assert_eq!(bytes(offset as u64, len, 7), part);
            if offset % 8 == 0 {
                assert!(are(part, offset as u64, 7));
                assert!(len == 0 || !are(part, offset as u64, 8));
            }
        }
        assert_eq!(describe(512, &right[512..]), "512*#7");
        assert_eq!(
            describe(1, &[&right[1..9], &[0; 9]].concat()),
            "8*#7+9*zero"
        );
    }
}
