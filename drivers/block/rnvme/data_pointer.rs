// SPDX-License-Identifier: GPL-2.0

//! Where the memory of a command is, as the entry of the command says it.
//!
//! Pure: imports nothing of the kernel, so it can be compiled and tested without one.

/// The field DPTR of a command, with what it consists of, which the field PSDT says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataPointer {
    /// The first half.
    pub(crate) first: u64,
    /// The second half.
    pub(crate) second: u64,
    /// Whether the two are a descriptor of a scatter-gather list, and not two PRP entries.
    pub(crate) is_sgl: bool,
}

/// A list in memory of the controller, to which the pointer of a command leads.
pub(crate) trait List {
    /// What is wrong if there is no memory for the list.
    type Error;

    /// Returns the address of the list, which begins to exist. The memory of the command begins at
    /// `first`.
    fn begin(&mut self, first: u64) -> Result<u64, Self::Error>;

    /// Adds a word; false if there is no room, as in a list that has not begun, that was closed, or
    /// whose page is full.
    fn push(&mut self, word: u64) -> bool;

    /// Goes on in another page, to which the last word of the full page then points. Moves that
    /// word.
    fn chain(&mut self) -> Result<(), Self::Error>;

    /// Leaves no room.
    fn close(&mut self);

    /// Returns the error for memory that cannot be described.
    fn unfit(&self) -> Self::Error;
}
