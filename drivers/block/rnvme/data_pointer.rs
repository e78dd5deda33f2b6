// SPDX-License-Identifier: GPL-2.0

//! Where the memory of a command is, as the entry of the command says it.
//!
//! Pure: imports nothing of the kernel, so the same file is compiled and tested on the host.

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
    /// What is wrong if a word cannot be set.
    type Error;

    /// Returns the address of the list, which begins to exist.
    fn begin(&mut self) -> Result<u64, Self::Error>;

    /// Begins the list anew, in a page to which the last word of the page before points.
    fn chain(&mut self) -> Result<(), Self::Error>;

    /// Sets a word of the list, whose index is less than 512.
    fn set(&mut self, index: usize, word: u64) -> Result<(), Self::Error>;

    /// Sets `count` words from `index` on to `first` and those that follow at distances of `step`.
    fn set_all(
        &mut self,
        index: usize,
        first: u64,
        step: u64,
        count: usize,
    ) -> Result<(), Self::Error> {
        (0..count).try_for_each(|nth| self.set(index + nth, first.wrapping_add(nth as u64 * step)))
    }

    /// Returns the error for memory that cannot be described.
    fn unfit(&self) -> Self::Error;
}
