// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers for the Rust block layer: inline functions of C, with checks of constants
 * that are macros.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/compat.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/sched/mm.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>

#ifdef CONFIG_BLOCK

/* rust/kernel/block/status.rs repeats these numbers. */
static_assert((__force u8)BLK_STS_NOTSUPP == 1);
static_assert((__force u8)BLK_STS_TIMEOUT == 2);
static_assert((__force u8)BLK_STS_NOSPC == 3);
static_assert((__force u8)BLK_STS_TRANSPORT == 4);
static_assert((__force u8)BLK_STS_TARGET == 5);
static_assert((__force u8)BLK_STS_RESV_CONFLICT == 6);
static_assert((__force u8)BLK_STS_MEDIUM == 7);
static_assert((__force u8)BLK_STS_PROTECTION == 8);
static_assert((__force u8)BLK_STS_RESOURCE == 9);
static_assert((__force u8)BLK_STS_IOERR == 10);
static_assert((__force u8)BLK_STS_AGAIN == 12);
static_assert((__force u8)BLK_STS_DEV_RESOURCE == 13);
static_assert((__force u8)BLK_STS_ZONE_OPEN_RESOURCE == 14);
static_assert((__force u8)BLK_STS_ZONE_ACTIVE_RESOURCE == 15);
static_assert((__force u8)BLK_STS_OFFLINE == 16);
static_assert((__force u8)BLK_STS_DURATION_LIMIT == 17);
static_assert((__force u8)BLK_STS_INVAL == 19);

/* rust/kernel/block/mq/passthrough.rs repeats these numbers. */
static_assert(BIO_MAX_VECS == 256);

/* rust/kernel/block/limits.rs repeats these bits. */
static_assert((__force u32)BLK_FEAT_WRITE_CACHE == 1u << 0);
static_assert((__force u32)BLK_FEAT_FUA == 1u << 1);
static_assert((__force u32)BLK_FEAT_ROTATIONAL == 1u << 2);
static_assert((__force u32)BLK_FEAT_IO_STAT == 1u << 4);
static_assert((__force u32)BLK_FEAT_STABLE_WRITES == 1u << 5);
static_assert((__force u32)BLK_FEAT_NOWAIT == 1u << 7);
static_assert((__force u32)BLK_FEAT_ZONED == 1u << 10);
static_assert((__force u32)BLK_FEAT_ATOMIC_WRITES == 1u << 14);

/*
 * When blk_mq_alloc_tag_set() fails, memory of requests that it has allocated may still
 * be waiting for a grace period of tags_srcu. The error path does not wait for that:
 * cleanup_srcu_struct() warns, and leaves the structure as it is if the grace period is
 * not over. The caller frees the tag set then, so this function completes the cleanup,
 * until C waits: "blk-mq: wait for callbacks when a tag set cannot be allocated".
 */
__rust_helper int rust_helper_blk_alloc_tag_set(struct blk_mq_tag_set *set)
{
	int error = blk_mq_alloc_tag_set(set);

#ifdef CONFIG_TREE_SRCU
	if (error && set->tags_srcu.srcu_sup) {
		srcu_barrier(&set->tags_srcu);
		cleanup_srcu_struct(&set->tags_srcu);
	}
#elif defined(CONFIG_TINY_SRCU)
	/* The work item may have queued itself again while it was flushed. */
	if (error && set->tags_srcu.srcu_work.func) {
		srcu_barrier(&set->tags_srcu);
		cleanup_srcu_struct(&set->tags_srcu);
	}
#endif
	return error;
}

__rust_helper bool
rust_helper_blk_batch_add(struct request *rq, struct io_comp_batch *batch)
{
	return blk_mq_add_to_batch(rq, batch, false, blk_mq_end_request_batch);
}

/*
 * Returns the number of references to a disk that was not added. C has no function that
 * waits until they are put.
 */
__rust_helper unsigned int
rust_helper_blk_disk_references(struct gendisk *disk)
{
	return kref_read(&disk_to_dev(disk)->kobj.kref);
}

__rust_helper bool rust_helper_blk_fake_timeout(struct request *rq)
{
	return blk_should_fake_timeout(rq->q);
}

__rust_helper bool rust_helper_blk_in_noio(void)
{
	return current->flags & PF_MEMALLOC_NOIO;
}

__rust_helper unsigned int rust_helper_blk_noio_save(void)
{
	return memalloc_noio_save();
}

__rust_helper void rust_helper_blk_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

__rust_helper unsigned int rust_helper_blk_noreclaim_save(void)
{
	return memalloc_noreclaim_save();
}

__rust_helper void rust_helper_blk_noreclaim_restore(unsigned int flags)
{
	memalloc_noreclaim_restore(flags);
}

__rust_helper bool rust_helper_blk_node_online(unsigned int node)
{
	return node < MAX_NUMNODES && node_online(node);
}

__rust_helper unsigned int rust_helper_blk_online_nodes(void)
{
	return nr_online_nodes;
}

__rust_helper unsigned int rust_helper_blk_possible_cpus(void)
{
	return num_possible_cpus();
}

__rust_helper bool rust_helper_blk_cpu_possible(unsigned int cpu)
{
	return cpu_possible(cpu);
}

__rust_helper bool rust_helper_blk_owner_stays(struct module *owner)
{
#ifdef CONFIG_MODULES
	return !owner || READ_ONCE(owner->state) == MODULE_STATE_LIVE;
#else
	return true;
#endif
}

/*
 * Puts a reference to a disk, and returns true if that released the disk: the release
 * ends with putting the inode, after the last access to the operations. Returns false
 * if there is another reference to the disk, or temporarily one to the inode.
 */
__rust_helper bool rust_helper_blk_put_disk(struct gendisk *disk)
{
	struct inode *inode = disk->part0->bd_mapping->host;
	bool released;

	ihold(inode);
	put_disk(disk);
	released = icount_read_once(inode) == 1;
	iput(inode);
	return released;
}

/*
 * As soon as the request is requeued, another CPU may end it, and then the disk may be
 * freed. Hold a reference to its queue until the queue is not accessed any more.
 */
__rust_helper void rust_helper_blk_requeue(struct request *rq)
{
	struct request_queue *q = rq->q;

	percpu_ref_get(&q->q_usage_counter);
	blk_mq_requeue_request(rq, true);
	percpu_ref_put(&q->q_usage_counter);
}

/*
 * Requeues a request that is to be dispatched after some milliseconds. The requests of a
 * disk that are requeued have one timer. It is not put off for those that wait already:
 * C's function alone would do that, again and again.
 */
__rust_helper void rust_helper_blk_requeue_after(struct request *rq,
						 unsigned int msecs)
{
	unsigned long flags, delay = msecs_to_jiffies(msecs);
	struct request_queue *q = rq->q;
	struct delayed_work *work = &q->requeue_work;

	percpu_ref_get(&q->q_usage_counter);
	blk_mq_requeue_request(rq, false);
	/*
	 * The lock serialises those who set the timer. The work item takes it after it is no
	 * longer pending, so one that is pending finds the request. C takes no lock to make
	 * the item pending for requests that are not delayed. These must not wait for the
	 * timer, so it is set only if the item is not pending, or waits for it.
	 */
	spin_lock_irqsave(&q->requeue_lock, flags);
	if (!delayed_work_pending(work)) {
		/* If it is pending now, it was made so for others. */
		if (kblockd_mod_delayed_work_on(WORK_CPU_UNBOUND, work, delay))
			blk_mq_kick_requeue_list(q);
	} else if (time_before(jiffies + delay, READ_ONCE(work->timer.expires))) {
		mod_timer_pending(&work->timer, jiffies + delay);
	}
	spin_unlock_irqrestore(&q->requeue_lock, flags);
	percpu_ref_put(&q->q_usage_counter);
}

/*
 * In a batch, C would clear a reserved tag outside of the bitmap that has the others
 * ("blk-mq: keep requests with reserved tags out of batches").
 */
__rust_helper enum rq_end_io_ret
rust_helper_blk_free_at_end(struct request *rq, blk_status_t status,
			    const struct io_comp_batch *batch)
{
	blk_mq_free_request(rq);
	return RQ_END_IO_NONE;
}

__rust_helper void rust_helper_blk_execute_nowait(struct request *rq)
{
	rq->end_io = rust_helper_blk_free_at_end;
	blk_execute_rq_nowait(rq, true);
}

/*
 * Calls a function for each queue of a tag set, in a read-side critical section of RCU.
 * A queue that is just leaving the tag set may be among them.
 */
__rust_helper void
rust_helper_blk_visit_queues(struct blk_mq_tag_set *set, void *arg,
			     void (*f)(struct request_queue *q, void *arg))
{
	struct request_queue *q;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &set->tag_list, tag_set_list)
		(*f)(q, arg);
	rcu_read_unlock();
}

/*
 * Changes how often a queue is quiesced, as blk_mq_quiesce_queue_nowait() and
 * blk_mq_unquiesce_queue() do, by the difference between *to and *from. Does not run the
 * hardware queues, which may be missing. Returns whether they are to be run, because the
 * queue is no longer quiesced.
 */
__rust_helper bool rust_helper_blk_set_quiesce_depth(struct request_queue *q,
						     unsigned int *from,
						     const unsigned int *to)
{
	unsigned int depth;
	unsigned long flags;
	bool run;

	spin_lock_irqsave(&q->queue_lock, flags);
	depth = READ_ONCE(*to);
	q->quiesce_depth += (int)(depth - *from);
	run = depth != *from && !q->quiesce_depth;
	*from = depth;
	if (q->quiesce_depth)
		blk_queue_flag_set(QUEUE_FLAG_QUIESCED, q);
	else
		blk_queue_flag_clear(QUEUE_FLAG_QUIESCED, q);
	spin_unlock_irqrestore(&q->queue_lock, flags);
	return run;
}

/*
 * Work items run the hardware queues, unless the queue was drained. The caller ensures
 * that the number of hardware queues does not change.
 */
__rust_helper void rust_helper_blk_run_queues(struct request_queue *q)
{
	if (percpu_ref_tryget(&q->q_usage_counter)) {
		blk_mq_run_hw_queues(q, true);
		percpu_ref_put(&q->q_usage_counter);
	}
}

/*
 * Like blk_mq_start_stopped_hw_queues(), but may be called for a disk that is being
 * removed; with "blk-mq: let stopped queues be started while their disk is removed", C's
 * function may, too. The caller ensures that the number of hardware queues does not
 * change: while it does, some are missing.
 */
__rust_helper void rust_helper_blk_start_queues(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		clear_bit(BLK_MQ_S_STOPPED, &hctx->state);
	/* Pairs with the barrier in blk_mq_hctx_stopped(). */
	smp_mb__after_atomic();

	/*
	 * Work items run the queues. They must not be queued after the queue was drained,
	 * which is not needed either: without requests in flight, there is nothing to run.
	 */
	rust_helper_blk_run_queues(q);
}

/* While the queue is in use, it cannot be frozen, so its hardware queues stay. */
__rust_helper bool rust_helper_blk_use_queue(struct request_queue *q)
{
	if (!percpu_ref_tryget(&q->q_usage_counter))
		return false;
	/*
	 * A task that can use a queue after it was frozen must see the hardware queues that
	 * were set up meanwhile. This pairs with the release in
	 * __percpu_ref_switch_to_percpu(); a reference in atomic mode is taken by an atomic
	 * operation, which is ordered by itself.
	 */
	smp_rmb();
	return true;
}

__rust_helper void rust_helper_blk_unuse_queue(struct request_queue *q)
{
	percpu_ref_put(&q->q_usage_counter);
}

/*
 * Starts the queues of all disks of a tag set. The caller ensures that the number of
 * hardware queues does not change, and that a disk is frozen before it is released.
 *
 * The lock is needed to remove a disk from the list, which is before its hardware queues
 * are freed. A task that has the lock may wait for requests of a disk that it freezes, in
 * hardware queues that are stopped. So those of disks in use are started meanwhile.
 */
__rust_helper void rust_helper_blk_start_all_queues(struct blk_mq_tag_set *set)
{
	struct request_queue *q;

	while (!mutex_trylock(&set->tag_list_lock)) {
		rcu_read_lock();
		list_for_each_entry_rcu(q, &set->tag_list, tag_set_list) {
			if (!rust_helper_blk_use_queue(q))
				continue;
			rust_helper_blk_start_queues(q);
			rust_helper_blk_unuse_queue(q);
		}
		rcu_read_unlock();
		fsleep(USEC_PER_MSEC);
	}
	list_for_each_entry(q, &set->tag_list, tag_set_list)
		rust_helper_blk_start_queues(q);
	mutex_unlock(&set->tag_list_lock);
}

/*
 * The most zones that a disk can have: the block layer allocates a byte for each, without
 * a check that there are not too many to ask for.
 */
__rust_helper unsigned int rust_helper_blk_max_zones(void)
{
	return IS_ENABLED(CONFIG_BLK_DEV_ZONED) ? min_t(size_t, KMALLOC_MAX_SIZE, INT_MAX) : 0;
}

/*
 * The largest limit on open or active zones: the block layer allocates a pointer for each
 * zone that may be open, without a check that there are not too many to ask for.
 */
__rust_helper unsigned int rust_helper_blk_max_limited_zones(void)
{
	return KMALLOC_MAX_SIZE / sizeof(void *);
}

__rust_helper int
rust_helper_blk_report_zone(struct gendisk *disk, struct blk_zone *zone,
			    unsigned int index, struct blk_report_zones_args *args)
{
	if (!IS_ENABLED(CONFIG_BLK_DEV_ZONED))
		return -EOPNOTSUPP;
	return disk_report_zone(disk, zone, index, args);
}

__rust_helper int rust_helper_blk_revalidate_zones(struct gendisk *disk)
{
	if (!IS_ENABLED(CONFIG_BLK_DEV_ZONED))
		return -EOPNOTSUPP;
	return blk_revalidate_disk_zones(disk);
}

__rust_helper bool rust_helper_blk_disk_is_dead(struct gendisk *disk)
{
	return test_bit(GD_DEAD, &disk->state);
}

struct blk_add_work {
	struct work_struct work;
	struct device *parent;
	struct gendisk *disk;
	const struct attribute_group **groups;
	int error;
};

__rust_helper void rust_helper_blk_add_work(struct work_struct *work)
{
	struct blk_add_work *add = container_of(work, struct blk_add_work, work);

	add->error = device_add_disk(add->parent, add->disk, add->groups);
}

/*
 * Adds a disk. The block layer opens the disk to scan for partitions, and the file is
 * closed when the task returns to user space. For a module that is being loaded, this
 * may be after loading has failed and the module was freed. A work item therefore adds
 * the disk in that case, and flush_delayed_fput() closes the file. With "block: close
 * the disk at once after looking for partitions", the block layer closes the file at once.
 */
__rust_helper int
rust_helper_blk_add_disk(struct device *parent, struct gendisk *disk,
			 const struct attribute_group **groups,
			 struct module *owner)
{
	struct blk_add_work add = {
		.parent = parent,
		.disk = disk,
		.groups = groups,
	};

	if (rust_helper_blk_owner_stays(owner))
		return device_add_disk(parent, disk, groups);

	INIT_WORK_ONSTACK(&add.work, rust_helper_blk_add_work);
	queue_work(system_dfl_wq, &add.work);
	flush_work(&add.work);
	destroy_work_on_stack(&add.work);
	flush_delayed_fput();
	return add.error;
}

/*
 * Converts the argument of an ioctl of a task with a 32-bit ABI to an address. Without
 * CONFIG_COMPAT there are no such tasks.
 */
__rust_helper unsigned long rust_helper_blk_compat_ptr(unsigned long arg)
{
#ifdef CONFIG_COMPAT
	arg = (unsigned long)compat_ptr(arg);
#endif
	return arg;
}

/* rust/kernel/block/{bdev,gendisk/operations}.rs repeat these numbers. */
static_assert((__force unsigned int)BLK_OPEN_READ == 1);
static_assert((__force unsigned int)(BLK_OPEN_READ | BLK_OPEN_WRITE) == 3);

__rust_helper sector_t rust_helper_bdev_nr_sectors(struct block_device *bdev)
{
	return bdev_nr_sectors(bdev);
}

__rust_helper unsigned int
rust_helper_bdev_logical_block_size(struct block_device *bdev)
{
	return bdev_logical_block_size(bdev);
}

__rust_helper unsigned int
rust_helper_bdev_dma_alignment(struct block_device *bdev)
{
	return bdev_dma_alignment(bdev);
}

__rust_helper bool rust_helper_bdev_nowait(struct block_device *bdev)
{
	return bdev_nowait(bdev);
}

__rust_helper bool rust_helper_bdev_read_only(struct block_device *bdev)
{
	return bdev_read_only(bdev);
}

/* Reads all limits while they do not change. */
__rust_helper void rust_helper_bdev_get_limits(struct block_device *bdev,
					       struct queue_limits *lim)
{
	*lim = queue_limits_start_update(bdev_get_queue(bdev));
	queue_limits_cancel_update(bdev_get_queue(bdev));
}

__rust_helper struct queue_limits
rust_helper_queue_limits_start_update(struct request_queue *q)
{
	return queue_limits_start_update(q);
}

__rust_helper void
rust_helper_queue_limits_cancel_update(struct request_queue *q)
{
	queue_limits_cancel_update(q);
}

#endif /* CONFIG_BLOCK */
