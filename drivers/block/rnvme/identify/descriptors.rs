// SPDX-License-Identifier: GPL-2.0

//! The list of the identifiers of a namespace.

use super::answer::{
    identifier,
    Answer, //
};

/// The identifiers of a namespace, as far as they are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identifiers {
    /// The identifier of 64 bits.
    pub(crate) eui64: Option<[u8; 8]>,
    /// The identifier of 128 bits.
    pub(crate) nguid: Option<[u8; 16]>,
    /// The universally unique identifier.
    pub(crate) uuid: Option<[u8; 16]>,
    /// The command set: 0 for that of NVM.
    pub(crate) command_set: Option<u8>,
}

impl Identifiers {
    /// Returns whether the command set is that of NVM, as it is if the list has none.
    pub(crate) fn is_nvm(&self) -> bool {
        self.command_set.unwrap_or(0) == 0
    }

    /// Parses the answer.
    ///
    /// The list ends at the first entry of type 0, and before the first one that is not all in the
    /// answer, or whose length is not that of its type. An entry of an unknown type is left out.
    pub(crate) fn parse(data: &Answer) -> Self {
        let mut this = Self::default();
        let mut rest = &data[..];
        while let [kind, len, _, _, tail @ ..] = rest {
            let Some((value, tail)) = tail.split_at_checked(usize::from(*len)) else {
                break;
            };
            let is_well_formed = match kind {
                0 => false,
                1 => set(&mut this.eui64, value),
                2 => set(&mut this.nguid, value),
                3 => set(&mut this.uuid, value),
                4 => match value {
                    [set] => {
                        this.command_set = Some(*set);
                        true
                    }
                    _ => false,
                },
                _ => true,
            };
            if !is_well_formed {
                break;
            }
            rest = tail;
        }
        this
    }
}

/// Sets `field` to an identifier; false if its length is wrong.
fn set<const N: usize>(field: &mut Option<[u8; N]>, value: &[u8]) -> bool {
    match value.try_into() {
        Ok(bytes) => {
            *field = identifier(bytes);
            true
        }
        Err(_) => false,
    }
}
