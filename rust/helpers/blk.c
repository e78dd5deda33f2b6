// SPDX-License-Identifier: GPL-2.0
/*
 * What the Rust block layer cannot take from the headers of C: inline functions,
 * with the constants that are macros.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/sched/mm.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>

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

/* rust/kernel/block/limits.rs repeats these bits. */
static_assert((__force u32)BLK_FEAT_WRITE_CACHE == 1u << 0);
static_assert((__force u32)BLK_FEAT_FUA == 1u << 1);
static_assert((__force u32)BLK_FEAT_ROTATIONAL == 1u << 2);
static_assert((__force u32)BLK_FEAT_ZONED == 1u << 10);

/*
 * When blk_mq_alloc_tag_set() fails, memory of requests that it has made may still
 * wait in tags_srcu to be freed. It does not wait for that: cleanup_srcu_struct()
 * warns, and if the grace period is not over, leaves things as they are. The caller
 * frees the tag set then, so this finishes what was left, until C waits:
 * patches/upstream/blk-mq-tag-set-srcu.patch.
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
	/* Its work item can have queued itself again while it was waited for. */
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
 * How many references there are to a disk that was not added. That they are gone can
 * only be waited for with patches/upstream/block-put-disk-sync.patch.
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
 * Puts a reference to a disk, and returns true if it was released then: releasing a
 * disk ends with putting its inode, after the last look at its operations. Returns
 * false if there is another reference to the disk, or to the inode for now. With
 * patches/upstream/block-put-disk-sync.patch, the caller can wait for the release.
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
 * As soon as the request is queued again, another CPU may end it, and then the disk
 * may go. So keep it until nothing is done to its queue any more.
 */
__rust_helper void rust_helper_blk_requeue(struct request *rq)
{
	struct request_queue *q = rq->q;

	percpu_ref_get(&q->q_usage_counter);
	blk_mq_requeue_request(rq, true);
	percpu_ref_put(&q->q_usage_counter);
}

/*
 * Like blk_mq_start_stopped_hw_queues(), but for a disk that may be on its way out;
 * with patches/upstream/blk-mq-start-removed.patch, that one is, too. The caller keeps
 * the hardware queues: while their number changes, some are missing.
 */
__rust_helper void rust_helper_blk_start_queues(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		clear_bit(BLK_MQ_S_STOPPED, &hctx->state);
	/* Pairs with the one in blk_mq_hctx_stopped(). */
	smp_mb__after_atomic();

	/*
	 * Workers run the queues. They must not be told to when the disk has been
	 * waited for, nor need be: without a request in use, there is nothing to run.
	 */
	if (percpu_ref_tryget(&q->q_usage_counter)) {
		blk_mq_run_hw_queues(q, true);
		percpu_ref_put(&q->q_usage_counter);
	}
}

/*
 * The caller sees to it that their number does not change, and no disk comes. C has no
 * way to ask for all disks of a tag set, but to change the number of their queues, until
 * patches/upstream/blk-mq-start-tagset.patch adds one.
 */
__rust_helper void rust_helper_blk_start_all_queues(struct blk_mq_tag_set *set)
{
	struct request_queue *q;

	mutex_lock(&set->tag_list_lock);
	list_for_each_entry(q, &set->tag_list, tag_set_list)
		rust_helper_blk_start_queues(q);
	mutex_unlock(&set->tag_list_lock);
}

/* While a disk is in use, it cannot be frozen, and so its hardware queues stay. */
__rust_helper bool rust_helper_blk_use_queue(struct request_queue *q)
{
	if (!percpu_ref_tryget(&q->q_usage_counter))
		return false;
	/*
	 * A task that can use a disk that was frozen sees the queues that it got meanwhile.
	 * This pairs with the release in __percpu_ref_switch_to_percpu(); a reference that
	 * is not per CPU is taken by an atomic operation, which is ordered by itself.
	 */
	smp_rmb();
	return true;
}

__rust_helper void rust_helper_blk_unuse_queue(struct request_queue *q)
{
	percpu_ref_put(&q->q_usage_counter);
}

struct blk_add_work {
	struct work_struct work;
	struct gendisk *disk;
	int error;
};

__rust_helper void rust_helper_blk_add_work(struct work_struct *work)
{
	struct blk_add_work *add = container_of(work, struct blk_add_work, work);

	add->error = device_add_disk(NULL, add->disk, NULL);
}

/*
 * Adds a disk. To look for partitions, the block layer opens it, and what it
 * opened is closed when the task returns to user space. For a module that is
 * loading, this may be after it has failed to, and is gone; so let a worker add
 * the disk, which closes it on its own. With patches/upstream/block-scan-close.patch,
 * the block layer closes it at once.
 */
__rust_helper int
rust_helper_blk_add_disk(struct gendisk *disk, struct module *owner)
{
	struct blk_add_work add = { .disk = disk };

	if (rust_helper_blk_owner_stays(owner))
		return device_add_disk(NULL, disk, NULL);

	INIT_WORK_ONSTACK(&add.work, rust_helper_blk_add_work);
	queue_work(system_dfl_wq, &add.work);
	flush_work(&add.work);
	destroy_work_on_stack(&add.work);
	flush_delayed_fput();
	return add.error;
}
