// SPDX-License-Identifier: GPL-2.0

//! Text that a controller tells about itself.

use core::fmt;

/// At most `N` printable characters of ASCII, without spaces at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    start: usize,
    end: usize,
}

impl<const N: usize> Text<N> {
    /// Takes a field up to the first NUL, with `?` for each byte that is not printable.
    pub(crate) fn new(mut bytes: [u8; N]) -> Self {
        let mut end = bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
        for byte in &mut bytes {
            if !matches!(byte, b' '..=b'~') {
                *byte = b'?';
            }
        }
        let start = bytes[..end]
            .iter()
            .position(|&byte| byte != b' ')
            .unwrap_or(end);
        while end > start && bytes[end - 1] == b' ' {
            end -= 1;
        }
        Self { bytes, start, end }
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        // All bytes are ASCII, so this does not fail.
        core::str::from_utf8(&self.bytes[self.start..self.end]).unwrap_or("")
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
