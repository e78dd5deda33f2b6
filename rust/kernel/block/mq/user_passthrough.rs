// SPDX-License-Identifier: GPL-2.0

//! Requests that a driver makes with the memory of the user who asks for them.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    passthrough::OwnedRequest,
    Operations,
    Passthrough,
    Request, //
};
use crate::{
    bindings,
    block::BlkResult,
    current,
    error::to_result,
    late_drop,
    prelude::*,
    uaccess::UserPtr, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};

/// A request with the memory of a user, as long as that is mapped.
///
/// It stays with the task whose memory it is: another one would copy to its own memory instead.
///
/// # Invariants
///
/// If there is a `bio`, it is the first of those that `blk_rq_map_user` has made for the request,
/// in this task. They are not unmapped yet.
struct Mapped<'q, T: Operations> {
    rq: OwnedRequest<'q, T>,
    bio: Option<NonNull<bindings::bio>>,
    /// Not `Send`.
    _task: PhantomData<*mut ()>,
}

impl<T: Operations> Mapped<'_, T> {
    /// Ends the use of the memory, and copies to it what the driver has written to a copy of it.
    fn unmap(&mut self) -> Result {
        let Some(bio) = self.bio.take() else {
            return Ok(());
        };
        self.rq.forget_bio();
        // The bios are leaked then, as to copy, or to release pages, may sleep.
        late_drop::check_may_sleep()?;
        // SAFETY: By the type invariant. The request does not refer to the bios any more.
        to_result(unsafe { bindings::blk_rq_unmap_user(bio.as_ptr()) })
    }
}

impl<T: Operations> Drop for Mapped<'_, T> {
    fn drop(&mut self) {
        let _ = self.unmap();
    }
}

impl<'q, T: Operations> Passthrough<'q, T> {
    /// Makes `len` bytes from `address` on, of the current task, the memory of the request.
    ///
    /// The device accesses the pages of the user, or a copy if they are not as the limits of the
    /// queue demand; see [`Self::with_buffer`]. The user may change them at any time. After a
    /// [`PassthroughOp::In`](super::PassthroughOp::In), the block layer copies back.
    ///
    /// This may wait for a page fault, which can take as long as the user wants, with the tag of
    /// the request.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request has a buffer, if `len` is 0 or more than the limits of the queue
    /// allow; `EFAULT` if the memory cannot be accessed, or if the task is a kernel thread without
    /// any; `ENOMEM` if out of memory; `EDEADLK` in a callback of the block layer or in another
    /// context that cannot wait for I/O. The request is dropped then.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{block::mq::*, prelude::*, uaccess::UserPtr};
    ///
    /// /// Has the device write `len` bytes to the memory of the current task.
    /// fn read<T: Operations>(disk: &DiskAccess<'_, T>, to: UserPtr, len: u32) -> Result {
    ///     let rq = disk.request(PassthroughOp::In)?.with_user_memory(to, len)?;
    ///     // The command would be stored in `rq.data()` here.
    ///     let rq = rq.execute()?;
    ///     rq.status()?;
    ///     rq.finish()
    /// }
    /// ```
    pub fn with_user_memory(self, address: UserPtr, len: u32) -> Result<UserPassthrough<'q, T>> {
        late_drop::check_may_wait()?;
        if self.rq.buffer.is_some() || len == 0 {
            return Err(EINVAL);
        }
        // C assumes that there is one.
        current!().mm().ok_or(EFAULT)?;
        let rq = self.rq.request().as_raw();
        // SAFETY: By the type invariant of `OwnedRequest`.
        let queue = unsafe { (*rq).q };
        // A page fault may wait for I/O anyway, so reclaim may, too.
        //
        // SAFETY: By the type invariant of `OwnedRequest`, and the request has no bio. The task has
        // memory of a user, of which C checks the address. After an error, C has unmapped it.
        to_result(unsafe {
            bindings::blk_rq_map_user(
                queue,
                rq,
                core::ptr::null_mut(),
                address.as_mut_ptr(),
                len as usize,
                bindings::GFP_KERNEL,
            )
        })?;
        // SAFETY: By the type invariant of `OwnedRequest`.
        let bio = NonNull::new(unsafe { (*rq).bio });
        // INVARIANT: `blk_rq_map_user` has just made it.
        Ok(UserPassthrough {
            mapped: Mapped {
                rq: self.rq,
                bio,
                _task: PhantomData,
            },
        })
    }
}

/// A [`Passthrough`] request with the memory of the user of the current task.
///
/// Dropping it ends the use of the memory and frees the request. The task must do so where it can
/// sleep: otherwise, the memory remains in use for ever.
#[must_use = "dropping a request that was not executed has no effect"]
pub struct UserPassthrough<'q, T: Operations> {
    mapped: Mapped<'q, T>,
}

impl<'q, T: Operations> UserPassthrough<'q, T> {
    /// Passes the request to the driver, and waits until it has ended, as [`Passthrough::execute`]
    /// does.
    ///
    /// # Errors
    ///
    /// `EDEADLK` in a callback of the block layer or in another context that cannot wait for I/O.
    /// The request is dropped then.
    pub fn execute(mut self) -> Result<UserExecuted<'q, T>> {
        Ok(UserExecuted {
            status: self.mapped.rq.execute()?,
            mapped: self.mapped,
        })
    }
}

impl<T: Operations> Deref for UserPassthrough<'_, T> {
    type Target = Request<T>;

    fn deref(&self) -> &Request<T> {
        self.mapped.rq.request()
    }
}

/// A [`UserPassthrough`] request that has ended.
#[must_use = "the status of a request should be looked at"]
pub struct UserExecuted<'q, T: Operations> {
    status: BlkResult,
    mapped: Mapped<'q, T>,
}

impl<T: Operations> UserExecuted<'_, T> {
    /// Returns what the driver has ended the request with.
    pub fn status(&self) -> BlkResult {
        self.status
    }

    /// Ends the use of the memory, and frees the request.
    ///
    /// # Errors
    ///
    /// `EFAULT` if the data was not copied to the memory, as that cannot be written any more.
    /// `EDEADLK` in a context that cannot sleep: the memory remains in use then.
    pub fn finish(mut self) -> Result {
        self.mapped.unmap()
    }
}

impl<T: Operations> Deref for UserExecuted<'_, T> {
    type Target = Request<T>;

    fn deref(&self) -> &Request<T> {
        self.mapped.rq.request()
    }
}
