// SPDX-License-Identifier: GPL-2.0

//! The text of the attribute `badblocks`.

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

/// Writes a line with start and length for each entry, as many as fit.
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

/// Marks the sectors of `+FIRST-LAST` as bad, those of `-FIRST-LAST` as good.
pub(super) fn store(device: &Device, text: &Text) -> Result {
    let (mark, first, last) = parse(text)?;
    if first > last {
        return Err(EINVAL);
    }
    // Zero if there are more sectors than can be counted, which is refused.
    let len = Sectors((last - first).wrapping_add(1));
    device
        .change_bad_blocks(|bad| mark(bad, Sector(first), len))
        // C, too, has no other name for a table that is full.
        .map_err(|_| EINVAL)
}

/// What to do with a range.
type Mark = fn(&BadBlocks, Sector, Sectors) -> Result;

/// Reads a sign and two numbers, with blanks around all of it, but none within.
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

/// Reads the number that `bytes` are up to the first NUL.
fn number(bytes: &[u8]) -> Result<u64> {
    let text = CStr::from_bytes_until_nul(bytes).map_err(|_| EINVAL)?;
    Text::from_cstr(text).kstrtoull(0)
}

/// Leaves out what C's `isspace` is true for at either end.
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
