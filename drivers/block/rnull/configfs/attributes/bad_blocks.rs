// SPDX-License-Identifier: GPL-2.0

//! The attribute `badblocks`.

use crate::device::Device;
use kernel::{
    block::{
        badblocks::BadBlocks,
        Sector,
        Sectors, //
    },
    configfs::{
        Page,
        Text, //
    },
    prelude::*, //
};

/// Writes a line with the start and the length of each entry, as far as they fit into the page.
pub(super) fn show(device: &Device, page: &mut Page<'_>) -> Result {
    for bad in device.bad_blocks().iter() {
        let before = page.len();
        let len = bad.end - bad.start;
        if writeln!(page, "{} {}", bad.start.0, len.0).is_err() {
            page.truncate(before);
            break;
        }
    }
    Ok(())
}

/// Adds the bad blocks of `+FIRST-LAST`, or clears those of `-FIRST-LAST`.
pub(super) fn store(device: &Device, text: &Text) -> Result {
    let (mark, first, last) = parse(text)?;
    if first > last {
        return Err(EINVAL);
    }
    // If the length overflows it is zero, which is rejected.
    let len = Sectors((last - first).wrapping_add(1));
    device
        .change_bad_blocks(|bad| mark(bad, Sector(first), len))
        // The same error for a full table as in null_blk.
        .map_err(|_| EINVAL)
}

/// What to do with a range of sectors.
type Mark = fn(&BadBlocks, Sector, Sectors) -> Result;

/// Parses a sign and two numbers. There may be whitespace around it, but not inside.
fn parse(text: &Text) -> Result<(Mark, u64, u64)> {
    let mut bytes = KVec::new();
    bytes.extend_from_slice(trim(text.to_bytes()), GFP_KERNEL)?;
    bytes.push(0, GFP_KERNEL)?;

    let mark: Mark = match bytes.first() {
        Some(b'+') => BadBlocks::set,
        Some(b'-') => BadBlocks::clear,
        _ => return Err(EINVAL),
    };
    let dash = bytes.iter().skip(1).position(|&byte| byte == b'-');
    let dash = dash.ok_or(EINVAL)? + 1;
    bytes[dash] = 0;
    Ok((mark, number(&bytes[1..])?, number(&bytes[dash + 1..])?))
}

/// Parses the number in `bytes`, up to the first NUL.
fn number(bytes: &[u8]) -> Result<u64> {
    let text = CStr::from_bytes_until_nul(bytes).map_err(|_| EINVAL)?;
    Text::from_cstr(text).kstrtoull(0)
}

/// Strips what C's `isspace` matches from both ends.
fn trim(mut bytes: &[u8]) -> &[u8] {
    fn is_space(byte: u8) -> bool {
        matches!(byte, b' ' | 9..=13 | 0xa0)
    }

    while let [first, rest @ ..] = bytes {
        if !is_space(*first) {
            break;
        }
        bytes = rest;
    }
    while let [rest @ .., last] = bytes {
        if !is_space(*last) {
            break;
        }
        bytes = rest;
    }
    bytes
}
