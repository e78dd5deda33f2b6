// SPDX-License-Identifier: GPL-2.0

//! Tests of a line of requests under an unkind driver.

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

    /// A driver that drops the line which has called it.
    struct Driver;

    #[pin_data]
    struct Queue {
        #[pin]
        line: SpinLockIrq<Option<Arc<DelayQueue<Driver>>>>,
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
            let line = rq.queue_data().line.lock().clone();
            let rq = rq.start();
            match line {
                Some(line) => {
                    let mut requests = RequestList::new();
                    requests.push_back(rq);
                    line.push(&mut requests);
                }
                None => rq.end(Ok(())),
            }
            Ok(())
        }

        fn delay_expired(mut requests: RequestList<Self>) {
            while let Some(rq) = requests.pop_front() {
                let queue = rq.queue_data();
                let line = queue.line.lock().take();
                if line.is_some() {
                    queue.dropped.store(true, Relaxed);
                }
                drop(line);
                rq.end(Ok(()));
            }
        }
    }

    #[test]
    fn a_line_may_be_dropped_by_its_own_callback() -> Result {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let line = Arc::new(DelayQueue::new(Delta::from_millis(1))?, GFP_KERNEL)?;
        let queue = try_pin_init!(Queue {
            line <- new_spinlock_irq!(Some(line)),
            dropped: atomic::Atomic::new(false),
        }? Error);
        // The block layer looks for partitions.
        let disk = GenDiskBuilder::new(tags, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_test_line", queue)?
            .add()?;
        assert!(disk.queue_data().dropped.load(Relaxed));
        Ok(())
    }
}
