// SPDX-License-Identifier: GPL-2.0

//! Tests that requests in a batch of C's end once.

#[macros::kunit_tests(rust_block_mq_batch)]
mod suite {
    use super::super::{
        super::test_driver::Driver,
        *, //
    };
    use crate::sync::atomic::{
        Atomic,
        Relaxed, //
    };
    use core::{
        mem,
        ptr, //
    };

    /// The number of times that requests were ended.
    static ENDED: Atomic<i32> = Atomic::new(0);

    /// The completion function of another driver: empties the batch, and counts the call.
    ///
    /// # Safety
    ///
    /// `batch` is valid, and nothing else uses it during the call.
    unsafe extern "C" fn complete(batch: *mut bindings::io_comp_batch) {
        // SAFETY: By the safety requirement.
        let head = unsafe { &mut (*batch).req_list.head };
        assert!(!head.is_null());
        *head = ptr::null_mut();
        ENDED.fetch_add(1, Relaxed);
    }

    /// Returns a batch as C may pass it to `poll`, with requests of another driver.
    fn full() -> bindings::io_comp_batch {
        let mut batch: bindings::io_comp_batch = pin_init::zeroed();
        batch.req_list.head = NonNull::dangling().as_ptr();
        batch.complete = Some(complete);
        batch
    }

    #[test]
    fn requests_end_once_wherever_they_were_moved() {
        let mut of_c = full();
        // SAFETY: `complete` ends the requests in it, and it is not used elsewhere during the
        // borrow.
        let lent = unsafe { IoCompletionBatch::<Driver>::from_raw(NonNull::from(&mut of_c)) };
        let taken = mem::take(lent);
        assert_eq!(ENDED.load(Relaxed), 0);
        drop(taken);
        assert_eq!(ENDED.load(Relaxed), 1);
        assert!(of_c.req_list.head.is_null());

        // C ends the requests that stay in its batch.
        let mut of_c = full();
        // SAFETY: As above.
        unsafe { IoCompletionBatch::<Driver>::from_raw(NonNull::from(&mut of_c)) };
        assert_eq!(ENDED.load(Relaxed), 1);
        assert!(!of_c.req_list.head.is_null());

        // After a swap, the batch that is dropped ends the requests.
        let (mut of_c, mut another) = (full(), IoCompletionBatch::<Driver>::new());
        // SAFETY: As above.
        mem::swap(&mut another, unsafe {
            IoCompletionBatch::from_raw(NonNull::from(&mut of_c))
        });
        drop(another);
        assert_eq!(ENDED.load(Relaxed), 2);
        assert!(of_c.req_list.head.is_null());
    }
}
