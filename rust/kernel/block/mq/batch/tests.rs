// SPDX-License-Identifier: GPL-2.0

//! Tests of what becomes of requests in a batch that was lent.

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

    /// How often requests were ended.
    static ENDED: Atomic<i32> = Atomic::new(0);

    /// Ends the requests of a batch, of which it only knows whether there are any.
    ///
    /// # Safety
    ///
    /// `batch` is valid, and nothing else uses it meanwhile.
    unsafe extern "C" fn complete(batch: *mut bindings::io_comp_batch) {
        // SAFETY: By the safety requirement.
        let head = unsafe { &mut (*batch).req_list.head };
        assert!(!head.is_null());
        *head = ptr::null_mut();
        ENDED.fetch_add(1, Relaxed);
    }

    /// A batch as a poll of C's may lend it, with requests of another driver.
    fn full() -> bindings::io_comp_batch {
        let mut batch: bindings::io_comp_batch = pin_init::zeroed();
        batch.req_list.head = NonNull::dangling().as_ptr();
        batch.complete = Some(complete);
        batch
    }

    #[test]
    fn requests_end_once_wherever_they_were_moved() {
        let mut of_c = full();
        // SAFETY: `complete` ends what is in it, and it is not used elsewhere meanwhile.
        let lent = unsafe { IoCompletionBatch::<Driver>::from_raw(NonNull::from(&mut of_c)) };
        let taken = mem::take(lent);
        assert_eq!(ENDED.load(Relaxed), 0);
        drop(taken);
        assert_eq!(ENDED.load(Relaxed), 1);
        assert!(of_c.req_list.head.is_null());

        // What stays is left to C.
        let mut of_c = full();
        // SAFETY: As above.
        unsafe { IoCompletionBatch::<Driver>::from_raw(NonNull::from(&mut of_c)) };
        assert_eq!(ENDED.load(Relaxed), 1);
        assert!(!of_c.req_list.head.is_null());

        // Of two that change places, the one that is dropped ends.
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
