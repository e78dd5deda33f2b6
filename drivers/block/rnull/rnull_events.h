/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints of the null block driver in Rust, which drivers/block/rnull/trace.rs
 * declares for the driver. The code below relies only on what rust/kernel/trace.rs
 * states of the arguments.
 */

#undef TRACE_SYSTEM
#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#ifdef CONFIG_BLK_DEV_RUST_NULL_DROPIN
#define TRACE_SYSTEM nullb
#else
#define TRACE_SYSTEM rnullb
#endif
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE rnull_events

#if !defined(_TRACE_RNULL_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RNULL_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/blktrace_api.h>
#include <linux/trace_seq.h>
#include <linux/tracepoint.h>

/* An event or a function, whose name is unique in the kernel, with null_blk built in, too. */
#ifdef CONFIG_BLK_DEV_RUST_NULL_DROPIN
#define RNULL_EVENT(name)	nullb_##name
#else
#define RNULL_EVENT(name)	rnullb_##name
#endif

/* Plain numbers, since the file "format" of an event shows this text; rnull_events.c compares. */
#define RNULL_STATUSES			\
	{ 0, "OK" },			\
	{ 1, "NOTSUPP" },		\
	{ 2, "TIMEOUT" },		\
	{ 3, "NOSPC" },			\
	{ 9, "RESOURCE" },		\
	{ 10, "IOERR" },		\
	{ 14, "ZONE_OPEN_RESOURCE" },	\
	{ 15, "ZONE_ACTIVE_RESOURCE" },	\
	{ 19, "INVAL" }

/* Returns the name of the disk of @rq, which is empty if the driver itself made @rq. */
const char *RNULL_EVENT(rq_disk_name)(const struct request *rq);

/* Appends "disk=NAME, " to @p, or nothing if @name is empty; returns what was appended. */
const char *RNULL_EVENT(trace_disk_name)(struct trace_seq *p, const char *name);

TRACE_EVENT(RNULL_EVENT(rq_issue),

	TP_PROTO(struct request *rq),

	TP_ARGS(rq),

	TP_STRUCT__entry(
		__array(char, disk, DISK_NAME_LEN)
		__field_struct(enum req_op, op)
		__field(unsigned int, hwq)
		__field(int, tag)
		__field(u64, sector)
		__field(unsigned int, bytes)
	),

	TP_fast_assign(
		strscpy_pad(__entry->disk, RNULL_EVENT(rq_disk_name)(rq));
		__entry->op = req_op(rq);
		__entry->hwq = rq->mq_hctx->queue_num;
		__entry->tag = rq->tag;
		__entry->sector = blk_rq_trace_sector(rq);
		__entry->bytes = blk_rq_bytes(rq);
	),

	TP_printk("disk=%s, req=%-15s hwq=%u tag=%d sector=%llu bytes=%u",
		  __entry->disk, blk_op_str(__entry->op), __entry->hwq,
		  __entry->tag, __entry->sector, __entry->bytes)
);

TRACE_EVENT(RNULL_EVENT(rq_complete),

	TP_PROTO(struct request *rq, u8 status),

	TP_ARGS(rq, status),

	TP_STRUCT__entry(
		__array(char, disk, DISK_NAME_LEN)
		__field_struct(enum req_op, op)
		__field(unsigned int, hwq)
		__field(int, tag)
		__field(u64, sector)
		__field(unsigned int, bytes)
		__field(u8, status)
	),

	TP_fast_assign(
		strscpy_pad(__entry->disk, RNULL_EVENT(rq_disk_name)(rq));
		__entry->op = req_op(rq);
		__entry->hwq = rq->mq_hctx->queue_num;
		__entry->tag = rq->tag;
		__entry->sector = blk_rq_trace_sector(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->status = status;
	),

	TP_printk("disk=%s, req=%-15s hwq=%u tag=%d sector=%llu bytes=%u status=%s",
		  __entry->disk, blk_op_str(__entry->op), __entry->hwq,
		  __entry->tag, __entry->sector, __entry->bytes,
		  __print_symbolic(__entry->status, RNULL_STATUSES))
);

#ifdef CONFIG_BLK_DEV_ZONED

/* The layout and the text of these are those of null_blk's events. */
TRACE_EVENT(RNULL_EVENT(zone_op),

	TP_PROTO(struct request *rq, u32 zone, enum blk_zone_cond condition),

	TP_ARGS(rq, zone, condition),

	TP_STRUCT__entry(
		__array(char, disk, DISK_NAME_LEN)
		__field_struct(enum req_op, op)
		__field(unsigned int, zone_no)
		__field(unsigned int, zone_cond)
	),

	TP_fast_assign(
		strscpy_pad(__entry->disk, RNULL_EVENT(rq_disk_name)(rq));
		__entry->op = req_op(rq);
		__entry->zone_no = zone;
		__entry->zone_cond = condition;
	),

	TP_printk("%s req=%-15s zone_no=%u zone_cond=%-10s",
		  RNULL_EVENT(trace_disk_name)(p, __entry->disk),
		  blk_op_str(__entry->op), __entry->zone_no,
		  blk_zone_cond_str(__entry->zone_cond))
);

TRACE_EVENT(RNULL_EVENT(report_zones),

	TP_PROTO(struct gendisk *disk, u32 zones),

	TP_ARGS(disk, zones),

	TP_STRUCT__entry(
		__array(char, disk, DISK_NAME_LEN)
		__field(unsigned int, nr_zones)
	),

	TP_fast_assign(
		strscpy_pad(__entry->disk, disk->disk_name);
		__entry->nr_zones = zones;
	),

	TP_printk("%s nr_zones=%u",
		  RNULL_EVENT(trace_disk_name)(p, __entry->disk),
		  __entry->nr_zones)
);

#endif /* CONFIG_BLK_DEV_ZONED */

#endif /* _TRACE_RNULL_H */

/* Outside of what is read only once. */
#include <trace/define_trace.h>
