// SPDX-License-Identifier: GPL-2.0

//! The copy of an answer, field by field.

/// The size of every answer.
pub(crate) const SIZE: usize = 4096;

/// A copy of an answer.
pub(crate) type Answer = [u8; SIZE];

/// Returns the `N` bytes from `AT` on. That they exist is checked at compile time.
pub(crate) fn bytes<const AT: usize, const N: usize>(data: &Answer) -> [u8; N] {
    const { assert!(AT + N <= SIZE) };
    let mut field = [0; N];
    field.copy_from_slice(&data[AT..AT + N]);
    field
}

/// Returns the byte at `AT`.
pub(crate) fn byte<const AT: usize>(data: &Answer) -> u8 {
    bytes::<AT, 1>(data)[0]
}

/// Returns the number of 16 bits at `AT`.
pub(crate) fn le16<const AT: usize>(data: &Answer) -> u16 {
    u16::from_le_bytes(bytes::<AT, 2>(data))
}

/// Returns the number of 32 bits at `AT`.
pub(crate) fn le32<const AT: usize>(data: &Answer) -> u32 {
    u32::from_le_bytes(bytes::<AT, 4>(data))
}

/// Returns the number of 64 bits at `AT`.
pub(crate) fn le64<const AT: usize>(data: &Answer) -> u64 {
    u64::from_le_bytes(bytes::<AT, 8>(data))
}

/// Returns an identifier unless all of it is 0, which stands for none.
pub(crate) fn identifier<const N: usize>(bytes: [u8; N]) -> Option<[u8; N]> {
    (bytes != [0; N]).then_some(bytes)
}
