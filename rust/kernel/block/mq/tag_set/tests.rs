// SPDX-License-Identifier: GPL-2.0

//! Tests of what keeps hardware queues while their number changes.

#[macros::kunit_tests(rust_block_mq_tag_set)]
mod suite {
    use super::super::{
        super::test_driver::Driver,
        *, //
    };
    use crate::error::from_err_ptr;
    use core::ptr::{
        self,
        NonNull, //
    };

    #[test]
    fn the_queues_of_a_frozen_disk_are_left_alone_while_they_change() -> Result {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let data = KBox::pin_init(tags.disk_data(Ok(())), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        // SAFETY: The queue is valid until it is destroyed.
        let freeze = || unsafe { bindings::blk_mq_freeze_queue_nomemsave(queue) };
        // SAFETY: As above; it is frozen whenever this is called.
        let thaw = || unsafe { bindings::blk_mq_unfreeze_queue_nomemrestore(queue) };
        let change = data.change();
        let goes_through = || {
            let (mut done, queue) = (false, NonNull::new(queue)?);
            // SAFETY: As above; it is on the tag set that the data was made for.
            unsafe { change.unless_begun(queue, |_| done = true) };
            Some(done)
        };

        let resize = tags.set.resize.lock();
        freeze();
        assert_eq!(goes_through(), Some(true));
        let fails_halfway = || -> Result {
            let _change = change.begin(&resize);
            assert_eq!(goes_through(), Some(false));
            // A disk in use cannot lose its queues.
            thaw();
            assert_eq!(goes_through(), Some(true));
            freeze();
            assert_eq!(goes_through(), Some(false));
            Err(ENOMEM)
        };
        assert_eq!(fails_halfway(), Err(ENOMEM));
        // Whoever leaves, in whichever way, has ended what they began.
        assert_eq!(goes_through(), Some(true));
        thaw();
        drop(resize);

        // SAFETY: The queue is ours, and not used again.
        tags.with_fixed_queues(|_| unsafe {
            bindings::blk_mq_destroy_queue(queue);
            bindings::blk_put_queue(queue);
        });
        Ok(())
    }
}
