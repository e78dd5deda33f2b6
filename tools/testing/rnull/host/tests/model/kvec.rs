// SPDX-License-Identifier: GPL-2.0

//! The vectors of the kernel crate, on those of the host.

use std::ops::Deref;

/// Allocation flags.
pub const GFP_KERNEL: u32 = 1;
pub const __GFP_NOWARN: u32 = 2;

#[derive(Debug, PartialEq)]
pub struct Error;

pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// A vector that does not grow by itself.
pub struct KVVec<T>(Vec<T>, usize);

impl<T> KVVec<T> {
    pub fn with_capacity(capacity: usize, _flags: u32) -> Result<Self> {
        Ok(Self(Vec::new(), capacity))
    }

    pub fn insert_within_capacity(&mut self, at: usize, element: T) -> Result {
        if self.0.len() == self.1 {
            return Err(Error);
        }
        self.0.insert(at, element);
        Ok(())
    }

    pub fn push(&mut self, element: T, _flags: u32) -> Result {
        self.0.push(element);
        Ok(())
    }

    pub fn remove(&mut self, at: usize) -> Result<T> {
        if at < self.0.len() {
            Ok(self.0.remove(at))
        } else {
            Err(Error)
        }
    }
}

impl<T> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
