// SPDX-License-Identifier: GPL-2.0

//! Tests of tag sets after failures.

#[macros::kunit_tests(rust_block_mq_tag_set)]
mod suite {
    use super::super::{
        super::{
            cpu_map::{
                is_possible,
                CpuMap, //
            },
            test_driver::Driver,
            Blocking, //
            IdleRequest,
            NoTimer,
            QueueResult,
        },
        *, //
    };
    use crate::{
        alloc::flags::{
            GFP_ATOMIC,
            __GFP_NOWARN, //
        },
        block::{
            gendisk::GenDiskBuilder,
            Sectors, //
        },
        cpu::{
            nr_cpu_ids,
            CpuId, //
        },
        cpumask::CpumaskVar,
        error::from_err_ptr,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Relaxed,
                Release, //
            },
            new_mutex,
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue, //
    };
    use core::ptr::{
        self,
        NonNull, //
    };

    /// Fails while a reader of `tags_srcu` stays in its critical section for a moment.
    ///
    /// # Safety
    ///
    /// `set` is a tag set that C is allocating.
    #[cfg(CONFIG_TREE_SRCU)]
    unsafe extern "C" fn failing_init_request(
        set: *mut bindings::blk_mq_tag_set,
        _: *mut bindings::request,
        _: c_uint,
        _: c_int,
    ) -> c_int {
        // SAFETY: By the safety requirement, for the field projection.
        let srcu = unsafe { &raw mut (*set).tags_srcu };
        // SAFETY: C has already initialised it.
        let index = unsafe { bindings::__srcu_read_lock(srcu) };
        let srcu = srcu as usize;
        let leave = move || {
            fsleep(Delta::from_millis(50));
            // SAFETY: The cleanup of the tag set waits for readers.
            unsafe { bindings::__srcu_read_unlock(srcu as *mut _, index) };
        };
        assert!(workqueue::system().try_spawn(GFP_KERNEL, leave).is_ok());
        ENOMEM.to_errno()
    }

    #[cfg(CONFIG_TREE_SRCU)]
    #[test]
    fn nothing_calls_back_into_a_tag_set_that_was_not_made() -> Result {
        // C has allocated a page for requests when this callback fails.
        let ops = bindings::blk_mq_ops {
            init_request: Some(failing_init_request),
            ..*Vtable::<Driver>::get()
        };
        let set = bindings::blk_mq_tag_set {
            ops: &ops,
            nr_hw_queues: 1,
            queue_depth: 1,
            nr_maps: 1,
            numa_node: bindings::NUMA_NO_NODE,
            ..pin_init::zeroed()
        };
        let options = TagSetOptions::default();
        let shared = KBox::pin_init(
            TagSetInner::<Driver>::new(options.queues, CpuMaps::default(), Ok(())),
            GFP_KERNEL,
        )?;
        let mut set = KBox::new(set, GFP_KERNEL)?;
        set.driver_data = ptr::from_ref(&*shared).cast_mut().cast();

        // SAFETY: This runs in a test.
        let test = unsafe { bindings::kunit_get_current_test() };
        // C warns if it does not clean up.
        //
        // SAFETY: As above.
        let quiet = unsafe { bindings::kunit_start_suppress_warning(test) };
        // SAFETY: The tag set is as `TagSet::new` builds it, except for `init_request`.
        let made = to_result(unsafe { bindings::blk_alloc_tag_set(&mut *set) });
        // SAFETY: `quiet` is the result of the call above.
        unsafe { bindings::kunit_end_suppress_warning(test, quiet) };
        let left = !set.tags_srcu.srcu_sup.is_null();
        if left {
            // The remaining SRCU work still accesses the tag set.
            let _ = KBox::leak(set);
        }
        assert_eq!(made, Err(ENOMEM));
        assert!(!left);
        Ok(())
    }

    /// A driver that allocates all free memory when its first queue is initialised again, and frees
    /// it when its second is.
    struct MemoryHog;

    #[pin_data]
    struct HogState {
        active: Atomic<bool>,
        #[pin]
        memory: Mutex<KVec<KVec<u8>>>,
    }

    impl HogState {
        fn new() -> impl PinInit<Self, Error> {
            try_pin_init!(Self {
                active: Atomic::new(false),
                memory <- new_mutex!(KVec::with_capacity(16384, GFP_KERNEL)?),
            }? Error)
        }

        fn allocate_all(&self) -> Result {
            let flags = GFP_ATOMIC | __GFP_NOWARN;
            let mut memory = self.memory.lock();
            // The data of a hardware queue is smaller, so its allocation still succeeds: these are
            // freed at the end, for it and for what C allocates before.
            let some = |size| [(); 8].map(|()| KVec::<u8>::with_capacity(size, flags));
            let _smaller = [8, 16, 32, 64, 96].map(some);
            // The sizes are from 4 MiB down to 128 bytes, then 192 bytes.
            for step in 0..17 {
                let size = if step < 16 { 1 << (22 - step) } else { 192 };
                while memory.len() < memory.capacity() {
                    let Ok(some) = KVec::with_capacity(size, flags) else {
                        break;
                    };
                    memory.push_within_capacity(some).map_err(|_| EINVAL)?;
                }
            }
            Ok(())
        }
    }

    #[vtable]
    impl Operations for MemoryHog {
        type Context = Blocking;
        type TagSetData = HogState;
        type QueueData = ();
        type HwData = ();
        type RequestData = ();
        type Timer = NoTimer;

        fn init_hw_queue(_: &(), state: &HogState, index: u32) -> impl PinInit<(), Error> {
            // SAFETY: `()` needs no initialisation. The closure runs after the memory for the data
            // was allocated.
            unsafe {
                pin_init::pin_init_from_closure(move |_| {
                    if !state.active.load(Relaxed) {
                        Ok(())
                    } else if index == 0 {
                        state.allocate_all()
                    } else {
                        state.memory.lock().clear();
                        Ok(())
                    }
                })
            }
        }

        fn init_request(_: &HogState) -> impl PinInit<()> {}

        fn queue_rq<'q>(rq: IdleRequest<'q, Self>, _: bool) -> QueueResult<'q, Self> {
            rq.start().end(Ok(()));
            Ok(())
        }
    }

    #[test]
    fn queues_are_made_again_without_memory() -> Result {
        let queues = QueueCounts {
            read: 1,
            ..QueueCounts::default()
        };
        let options = TagSetOptions {
            queues,
            ..TagSetOptions::default()
        };
        let tags = TagSet::<MemoryHog>::new(options, HogState::new())?;
        let data = KBox::pin_init(tags.disk_data(None, Ok(())), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;

        tags.data().active.store(true, Relaxed);
        let made = tags.set_queue_counts(queues);
        tags.data().active.store(false, Relaxed);
        tags.data().memory.lock().clear();

        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe { bindings::blk_mq_destroy_queue(queue) });
        // SAFETY: As above.
        unsafe { bindings::blk_put_queue(queue) };
        made
    }

    #[test]
    fn each_hardware_queue_serves_a_cpu() -> Result {
        let many = 2 * possible_cpus() + 1;
        let queues = QueueCounts {
            default: many,
            read: many,
            ..QueueCounts::default()
        };
        let options = TagSetOptions {
            queues,
            ..TagSetOptions::default()
        };
        let tags = TagSet::<Driver>::new(options, Ok(()))?;
        let data = KBox::pin_init(tags.disk_data(None, Ok(())), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;

        // SAFETY: The queue is valid, and has as many hardware queues as the tag set.
        let hctxs = unsafe { (*queue).queue_hw_ctx };
        let total = tags.queue_counts().total().unwrap_or(0) as usize;
        let without_cpu = (0..total).filter(|&index| {
            // SAFETY: There are `total` pointers.
            let hctx = unsafe { *hctxs.add(index) };
            // SAFETY: Each points to a hardware queue of the queue.
            unsafe { (*hctx).nr_ctx == 0 }
        });
        let without_cpu = without_cpu.count();

        // SAFETY: The queue is ours, and not used again.
        tags.with_fixed_queues(|_| unsafe { bindings::blk_mq_destroy_queue(queue) });
        // SAFETY: As above.
        unsafe { bindings::blk_put_queue(queue) };
        assert!(total > 0);
        assert_eq!(without_cpu, 0);
        Ok(())
    }

    #[test]
    fn queues_of_a_frozen_disk_are_not_walked_during_an_update() -> Result {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let data = KBox::pin_init(tags.disk_data(None, Ok(())), GFP_KERNEL)?;
        let data_ptr = ptr::from_ref(&*data).cast_mut().cast();
        // SAFETY: The tag set and the data outlive the queue, which is destroyed below.
        let queue = from_err_ptr(tags.with_fixed_queues(|set| unsafe {
            bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data_ptr)
        }))?;
        // SAFETY: The queue is valid until it is destroyed.
        let freeze = || unsafe { bindings::blk_mq_freeze_queue_nomemsave(queue) };
        // SAFETY: As above. The queue is frozen whenever this is called.
        let thaw = || unsafe { bindings::blk_mq_unfreeze_queue_nomemrestore(queue) };
        let update = data.queue_update();
        let goes_through = || {
            let (mut done, queue) = (false, NonNull::new(queue)?);
            // SAFETY: As above. The queue uses the tag set that the data belongs to.
            unsafe { update.with_stable_queues(queue, |_| done = true) };
            Some(done)
        };

        let resize = tags.set.resize.lock();
        freeze();
        assert_eq!(goes_through(), Some(true));
        let fails_halfway = || -> Result {
            let _update = update.begin(&resize);
            assert_eq!(goes_through(), Some(false));
            // The hardware queues of a disk in use are not replaced.
            thaw();
            assert_eq!(goes_through(), Some(true));
            freeze();
            assert_eq!(goes_through(), Some(false));
            Err(ENOMEM)
        };
        assert_eq!(fails_halfway(), Err(ENOMEM));
        // The update has ended, although the function returned early.
        assert_eq!(goes_through(), Some(true));
        thaw();
        drop(resize);

        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe {
            bindings::blk_mq_destroy_queue(queue);
            bindings::blk_put_queue(queue);
        });
        Ok(())
    }

    #[test]
    fn stopped_queues_are_started_while_another_disk_leaves() -> Result {
        let tags = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        let datas = [
            KBox::pin_init(tags.disk_data(None, Ok(())), GFP_KERNEL)?,
            KBox::pin_init(tags.disk_data(None, Ok(())), GFP_KERNEL)?,
        ];
        let new_queue = |data: &DiskData<Driver>| {
            let data = ptr::from_ref(data).cast_mut().cast();
            // SAFETY: The tag set and the data outlive the queues, which are destroyed below.
            from_err_ptr(tags.with_fixed_queues(|set| unsafe {
                bindings::blk_mq_alloc_queue(set, ptr::null_mut(), data)
            }))
        };
        let queue = new_queue(&datas[0])?;
        let other = new_queue(&datas[1])? as usize;
        // SAFETY: The queue is valid until it is destroyed, and has a hardware queue.
        let hctx = unsafe { *(*queue).queue_hw_ctx } as usize;
        let is_stopped = move || {
            let hctx = hctx as *const bindings::blk_mq_hw_ctx;
            // SAFETY: As above.
            let state = unsafe { (&raw const (*hctx).__bindgen_anon_1.state).read_volatile() };
            state & (1 << bindings::BLK_MQ_S_STOPPED) != 0
        };

        // Stands for a request that waits in a hardware queue that is stopped.
        //
        // SAFETY: As above.
        assert!(unsafe { bindings::blk_use_queue(queue) });
        // SAFETY: As above.
        unsafe { bindings::blk_mq_stop_hw_queues(queue) };
        assert!(is_stopped());

        // If a single disk is left, C freezes it to note that it does not share its tags.
        let tasks = Arc::new(Atomic::new(2u32), GFP_KERNEL)?;
        let task = tasks.clone();
        workqueue::system().try_spawn(GFP_KERNEL, move || {
            let other = other as *mut bindings::request_queue;
            // SAFETY: The test owns the queue, and does not use it again.
            unsafe { bindings::blk_mq_destroy_queue(other) };
            // SAFETY: As above.
            unsafe { bindings::blk_put_queue(other) };
            task.fetch_sub(1, Release);
        })?;
        // SAFETY: As above, for the field projection.
        let freeze_depth = unsafe { &raw const (*queue).mq_freeze_depth };
        // SAFETY: As above.
        while unsafe { freeze_depth.read_volatile() } == 0 {
            fsleep(Delta::from_millis(1));
        }

        let is_late = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let (task, late, address) = (tasks.clone(), is_late.clone(), queue as usize);
        workqueue::system().try_spawn(GFP_KERNEL, move || {
            let mut left = 1000;
            while is_stopped() && left > 0 {
                fsleep(Delta::from_millis(1));
                left -= 1;
            }
            late.store(left == 0, Relaxed);
            // SAFETY: `blk_use_queue` succeeded, and the queue is destroyed after `tasks` is zero.
            unsafe { bindings::blk_unuse_queue(address as *mut _) };
            task.fetch_sub(1, Release);
        })?;
        // SAFETY: The number of hardware queues does not change in this test.
        unsafe { bindings::blk_start_all_queues(tags.set.inner.get()) };
        while tasks.load(Acquire) > 0 {
            fsleep(Delta::from_millis(1));
        }
        assert!(!is_late.load(Relaxed));

        // SAFETY: The test owns the queue, and does not use it again.
        tags.with_fixed_queues(|_| unsafe {
            bindings::blk_mq_destroy_queue(queue);
            bindings::blk_put_queue(queue);
        });
        Ok(())
    }

    /// Returns the queue of each possible CPU, from `first` on.
    fn mapped_queues(tags: &TagSet<Driver>, map: usize, first: u32) -> Result<KVec<u32>> {
        let mut queues = KVec::new();
        // SAFETY: The tag set is valid, and has that map.
        let entries = unsafe { (*tags.set.inner.get()).map[map].mq_map };
        for cpu in (0..nr_cpu_ids()).filter(|cpu| is_possible(*cpu as usize)) {
            // SAFETY: The map has an entry for each CPU id.
            queues.push(unsafe { *entries.add(cpu as usize) } - first, GFP_KERNEL)?;
        }
        Ok(queues)
    }

    /// Returns a map of a queue for each possible CPU. The first CPU has queue `rotation`.
    fn rotated(rotation: u32) -> Result<CpuMap> {
        let count = possible_cpus();
        let mut masks = KVec::new();
        for _ in 0..count {
            masks.push(CpumaskVar::new_zero(GFP_KERNEL)?, GFP_KERNEL)?;
        }
        let cpus = (0..nr_cpu_ids()).filter(|cpu| is_possible(*cpu as usize));
        for (index, cpu) in (rotation..).zip(cpus) {
            masks[(index % count) as usize].set(CpuId::from_u32(cpu).ok_or(EINVAL)?);
        }
        CpuMap::new(count, |queue| Some(&*masks[queue as usize]))
    }

    fn is_rotated(queues: &[u32], rotation: u32) -> bool {
        let mut pairs = queues.iter().zip(rotation..);
        pairs.all(|(queue, index)| *queue == index % possible_cpus())
    }

    #[test]
    fn queues_serve_the_cpus_of_their_tables() -> Result {
        let count = possible_cpus();
        let queues = QueueCounts {
            default: count,
            read: count,
            poll: 0,
        };
        let options = TagSetOptions {
            queues,
            ..TagSetOptions::default()
        };
        let last = count - 1;
        let maps = |default, read| -> Result<CpuMaps> {
            Ok(CpuMaps {
                default: Some(rotated(default)?),
                read: Some(rotated(read)?),
            })
        };
        let tags = TagSet::<Driver>::with_cpu_maps(options, maps(0, last)?, Ok(()))?;
        assert!(is_rotated(&mapped_queues(&tags, 0, 0)?, 0));
        assert!(is_rotated(&mapped_queues(&tags, 1, count)?, last));

        // The same number of queues, for other CPUs.
        tags.set_cpu_maps(queues, maps(last, 0)?)?;
        assert!(is_rotated(&mapped_queues(&tags, 0, 0)?, last));
        assert!(is_rotated(&mapped_queues(&tags, 1, count)?, 0));

        // Fewer queues, without tables.
        tags.set_queue_counts(QueueCounts::default())?;
        assert!(mapped_queues(&tags, 0, 0)?.iter().all(|queue| *queue == 0));

        // A table for another number of queues.
        let wrong = tags.set_cpu_maps(QueueCounts::default(), maps(0, 0)?);
        assert_eq!(wrong, Err(EINVAL));
        assert_eq!(tags.queue_counts(), QueueCounts::default());
        tags.set_cpu_maps(queues, maps(last, last)?)?;
        assert!(is_rotated(&mapped_queues(&tags, 0, 0)?, last));
        Ok(())
    }

    #[test]
    fn reserved_tags_leave_others() -> Result {
        let new = |depth, reserved_tags| {
            let options = TagSetOptions {
                depth,
                reserved_tags,
                ..TagSetOptions::default()
            };
            TagSet::<Driver>::new(options, Ok(()))
        };
        for (depth, reserved) in [(0, 0), (1, 1), (4, 5), (64, 64), (256, 64), (4, u32::MAX)] {
            assert_eq!(new(depth, reserved).err(), Some(EINVAL));
        }
        for (depth, reserved) in [(1, 0), (2, 1), (64, 63), (256, 63)] {
            assert_eq!(new(depth, reserved)?.depth(), depth);
        }
        // Its scheduler has tags, too.
        let disk = GenDiskBuilder::new(new(64, 63)?, static_lock_class!())
            .capacity(Sectors::from_mebibytes(1))
            .build(c"rust_reserved", Ok(()))?
            .add()?;
        drop(disk);
        Ok(())
    }

    #[test]
    fn a_single_map_has_no_table() -> Result {
        let table = || -> Result<CpuMaps> {
            Ok(CpuMaps {
                default: Some(CpuMap::new(1, |_| None)?),
                read: None,
            })
        };
        let counts = QueueCounts::default();
        let without = TagSet::<Driver>::new(TagSetOptions::default(), Ok(()))?;
        assert_eq!(without.set_cpu_maps(counts, table()?), Err(EINVAL));
        let with = TagSet::<Driver>::with_cpu_maps(TagSetOptions::default(), table()?, Ok(()))?;
        with.set_cpu_maps(counts, table()?)
    }

    #[test]
    fn a_table_that_leaves_a_queue_without_cpus_is_not_used() -> Result {
        let first = (0..nr_cpu_ids()).find(|cpu| is_possible(*cpu as usize));
        let first = first.and_then(CpuId::from_u32).ok_or(EINVAL)?;
        let empty = CpumaskVar::new_zero(GFP_KERNEL)?;
        let mut all = CpumaskVar::new_zero(GFP_KERNEL)?;
        all.setall();

        assert_eq!(CpuMap::new(1, |_| Some(&*all))?.queue(first), Some(0));
        assert_eq!(CpuMap::new(1, |_| Some(&*empty))?.queue(first), Some(0));
        // The last queue has all CPUs, so the first has none.
        assert_eq!(CpuMap::new(2, |_| Some(&*all))?.queue(first), None);
        let one_mask = |queue| (queue == 0).then_some(&*all);
        assert_eq!(CpuMap::new(2, one_mask)?.queue(first), None);
        assert_eq!(CpuMap::new(u32::MAX, |_| Some(&*all))?.queue(first), None);
        Ok(())
    }
}
