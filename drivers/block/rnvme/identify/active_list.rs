// SPDX-License-Identifier: GPL-2.0

//! The list of the namespaces that are attached to a controller.

use super::answer::Answer;

/// Walks over the numbers of namespaces, answer by answer.
///
/// The numbers are returned in strictly ascending order, and no more of them than was agreed. So
/// the walk ends, whatever the controller answers.
pub(crate) struct ActiveList {
    last: u32,
    room: u32,
}

impl ActiveList {
    /// Begins a walk over at most `most` namespaces.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            last: 0,
            room: most,
        }
    }

    /// Returns the number to ask for: the answer lists those above it.
    pub(crate) fn after(&self) -> u32 {
        self.last
    }

    /// Calls `visit` for each number in the next answer. Returns whether there may be more, so that
    /// the controller has to be asked again.
    ///
    /// A list ends at the first 0, or at the first number that is not above the one before. After
    /// an error of `visit`, the walk is over.
    pub(crate) fn walk<E>(
        &mut self,
        data: &Answer,
        mut visit: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<bool, E> {
        for entry in data.chunks_exact(4) {
            let nsid = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            // The last two numbers have other meanings.
            if self.room == 0 || nsid <= self.last || nsid >= u32::MAX - 1 {
                self.room = 0;
                return Ok(false);
            }
            self.last = nsid;
            self.room -= 1;
            if let Err(error) = visit(nsid) {
                self.room = 0;
                return Err(error);
            }
        }
        Ok(self.room > 0)
    }
}
