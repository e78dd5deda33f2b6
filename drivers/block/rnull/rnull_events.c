// SPDX-License-Identifier: GPL-2.0
/* Defines the tracepoints. */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "rnull_events.h"

/* The numbers of RNULL_STATUSES. */
static_assert((__force u8)BLK_STS_OK == 0);
static_assert((__force u8)BLK_STS_NOTSUPP == 1);
static_assert((__force u8)BLK_STS_TIMEOUT == 2);
static_assert((__force u8)BLK_STS_NOSPC == 3);
static_assert((__force u8)BLK_STS_RESOURCE == 9);
static_assert((__force u8)BLK_STS_IOERR == 10);
static_assert((__force u8)BLK_STS_ZONE_OPEN_RESOURCE == 14);
static_assert((__force u8)BLK_STS_ZONE_ACTIVE_RESOURCE == 15);
static_assert((__force u8)BLK_STS_INVAL == 19);

const char *RNULL_EVENT(rq_disk_name)(const struct request *rq)
{
	return rq->q->disk ? rq->q->disk->disk_name : "";
}

const char *RNULL_EVENT(trace_disk_name)(struct trace_seq *p, const char *name)
{
	const char *text = trace_seq_buffer_ptr(p);

	if (*name)
		trace_seq_printf(p, "disk=%s, ", name);
	trace_seq_putc(p, '\0');
	return text;
}
