// SPDX-License-Identifier: GPL-2.0

//! Tests of workqueues that are dropped while they have work.

#[macros::kunit_tests(rust_owned_queue)]
mod suite {
    use super::super::*;
    use crate::{
        new_work,
        sync::{
            Arc,
            Completion, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue::{
            impl_has_work,
            Work,
            WorkItem, //
        }, //
    };

    /// A work item that may have the last reference to its own workqueue.
    #[pin_data]
    struct Item {
        #[pin]
        work: Work<Self>,
        queue: Option<Arc<OwnedQueue>>,
        done: Arc<Done>,
    }

    #[pin_data]
    struct Done {
        #[pin]
        completion: Completion,
    }

    impl_has_work! {
        impl HasWork<Self> for Item { self.work }
    }

    impl WorkItem for Item {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            // The test drops what it has meanwhile.
            fsleep(Delta::from_millis(50));
            this.done.completion.complete_all();
        }
    }

    fn queue(name: &CStr) -> Result<OwnedQueue> {
        OwnedQueue::new(name, ModulePin::of_this_code()?)
    }

    fn done() -> Result<Arc<Done>> {
        Arc::pin_init(
            pin_init!(Done {
                completion <- Completion::new(),
            }),
            GFP_KERNEL,
        )
    }

    fn item(queue: Option<Arc<OwnedQueue>>, done: Arc<Done>) -> Result<Arc<Item>> {
        Arc::pin_init(
            pin_init!(Item {
                work <- new_work!("rust_test_owned_queue"),
                queue,
                done,
            }),
            GFP_KERNEL,
        )
    }

    #[test]
    fn what_was_queued_is_executed() -> Result {
        let (queue, done) = (queue(c"rust_test_queue")?, done()?);
        let _ = queue.enqueue(item(None, done.clone())?);
        drop(queue);
        done.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn a_work_item_drops_its_own_workqueue() -> Result {
        let (first, last) = (done()?, done()?);
        let queue = Arc::new(queue(c"rust_test_own_queue")?, GFP_KERNEL)?;
        let _ = queue.enqueue(item(Some(queue.clone()), first.clone())?);
        let _ = queue.enqueue(item(Some(queue.clone()), last.clone())?);
        drop(queue);
        first.completion.wait_for_completion();
        last.completion.wait_for_completion();
        Ok(())
    }
}
