// SPDX-License-Identifier: GPL-2.0

//! A segment cannot be sent to another task.

//@ more errors follow from what a page is

use kernel::block::{
    bio::{FromDisk, Segment, Segments},
    mq::{Operations, QueueContext},
};

#[cfg(bad)]
fn sent<T: Send>(_: T) {}
#[cfg(not(bad))]
fn sent<T>(_: T) {}

pub fn segment(it: Segment<'_, FromDisk>) {
    sent(it); //~ ERROR E0277: `NonNull<kernel::bindings::page>` cannot be sent
}

pub fn segments(it: Segments<'_, FromDisk>) {
    sent(it); //~ ERROR E0277: `*const kernel::bindings::bio` cannot be sent
}

pub fn scope<T: Operations>(it: QueueContext<'_, T::Context>) {
    sent(it); //~ ERROR E0277: `*mut <T as kernel::block::mq::Operations>::Context` cannot be sent
}
