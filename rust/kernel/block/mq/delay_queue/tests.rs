// SPDX-License-Identifier: GPL-2.0

//! Test of a delay queue that its own callback drops.

#[macros::kunit_tests(rust_block_mq_delay)]
mod suite {
    use super::super::{
        super::{
            IdleRequest,
            NonBlocking,
            QueueResult,
            TagSet,
            TagSetOptions, //
        },
        *, //
    };
    use crate::{
        block::{
            gendisk::GenDiskBuilder,
            Sectors, //
        },
        new_spinlock_irq,
        sync::{
            atomic::{
                self,
                Relaxed, //
            },
            Arc,
            SpinLockIrq, //
        },
    };

    /// A driver that drops the delay queue from within `delay_expired`.
    struct Driver;

    #[pin_data]
    struct Queue {
        #[pin]
        delay_queue: SpinLockIrq<Option<Arc<DelayQueue<Driver>>>>,
        dropped: atomic::Atomic<bool>,
    }

    #[vtable]
    impl Operations for Driver {
        type Context = NonBlocking;
        type TagSetData = ();
        type QueueData = Queue;
        type HwData = ();
        type RequestData = ();
        type Timer = Timer;

        fn init_hw_queue(_: &Queue, _: &(), _: u32) -> impl PinInit<(), Error> {
            Ok(())
        }

        fn init_request(_: &()) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            let delay_queue = rq.queue_data().delay_queue.lock().clone();
            let rq = rq.start();
            match delay_queue {
                Some(delay_queue) => {
                    let mut requests = RequestList::new();
                    requests.push_back(rq);
                    delay_queue.push(&mut requests);
                }
                None => rq.end(Ok(())),
            }
            Ok(())
        }

        fn delay_expired(mut requests: RequestList<Self>) {
            while let Some(rq) = requests.pop_front() {
                let queue = rq.queue_data();
                let delay_queue = queue.delay_queue.lock().take();
                if delay_queue.is_some() {
                    queue.dropped.store(true, Relaxed);
                }
                drop(delay_queue);
                rq.end(Ok(()));
            }
        }
    }

    #[test]
    fn a_delay_queue_may_be_dropped_by_its_own_callback() -> Result {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let delay_queue = Arc::new(DelayQueue::new(Delta::from_millis(1))?, GFP_KERNEL)?;
        let queue = try_pin_init!(Queue {
            delay_queue <- new_spinlock_irq!(Some(delay_queue)),
            dropped: atomic::Atomic::new(false),
        }? Error);
        // The block layer reads the disk to look for partitions.
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_test_line", queue)?
            .add()?;
        assert!(disk.queue_data().dropped.load(Relaxed));
        Ok(())
    }
}
