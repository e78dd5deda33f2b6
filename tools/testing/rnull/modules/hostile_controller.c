// SPDX-License-Identifier: GPL-2.0
/*
 * A small NVMe controller: registers, queues and two namespaces, whose blocks are of 512 and of 4096
 * bytes. It is right unless it is told to lie.
 */
#include <linux/bitmap.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/nvme.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hostile.h"

#define DISK_BYTES	(16UL << 20)
#define NAMESPACES	2
#define MOST_BYTES	(128UL << 10)
#define QUEUE_ENTRIES	1024
#define LATER		512		/* Commands that wait. */
#define REMEMBERED	64
#define GHOSTS		32
#define EVENT_REQUESTS	4		/* AERL says so. */
#define NAMESPACES_CHANGED	(2 | NVME_LOG_CHANGED_NS << 16)

unsigned long done;
module_param(done, ulong, 0400);

/* What a test changes: which namespaces there are, as bits; their size; who they are. */
static unsigned int attached = (1 << NAMESPACES) - 1;
module_param(attached, uint, 0600);
static unsigned long disk_bytes = DISK_BYTES;
module_param(disk_bytes, ulong, 0600);
static unsigned int identity;
module_param(identity, uint, 0600);

/*
 * What it can do, of which the driver hears when it identifies the controller: whether it has a cache,
 * the optional commands that it has, the field MDTS, and the field SGLS, which is left to chance if it
 * is more than a bit.
 */
static bool has_cache = true;
module_param(has_cache, bool, 0600);
static ushort commands = NVME_CTRL_ONCS_DSM | NVME_CTRL_ONCS_WRITE_ZEROES;
module_param(commands, ushort, 0600);
static unsigned char mdts = 5;
module_param(mdts, byte, 0600);
static uint sgls = 2;
module_param(sgls, uint, 0600);

/* How many blocks to write at a time, if that is not left to the driver: the field NPWG. */
static ushort preferred;
module_param(preferred, ushort, 0600);

/* How many ranges a command may discard, if that is not as many as it can name. */
static unsigned int ranges_limit;
module_param(ranges_limit, uint, 0600);

/* Whether Abort may be late, too, so that the command that it is for times out once more. */
static bool late_aborts = true;
module_param(late_aborts, bool, 0600);

/* An event that a test reports: the result of the command. */
static unsigned int event;
module_param(event, uint, 0600);

struct submission {
	bool exists;
	u64 address;
	u32 entries, head, tail;
	u16 completion;
	u16 cids[REMEMBERED];
	unsigned int count;
};

struct completion_queue {
	bool exists, interrupts, lost;
	u64 address;
	u32 entries, tail, head;
	bool phase;
	unsigned long raised;
};

/* A command that is carried out, or an answer that is given, when it is time. */
struct later {
	bool is_used, is_done, is_told;
	u64 due;
	u16 queue, status;
	u32 result;
	struct nvme_command command;
};

/* A command that has no answer, but whose memory is accessed as long as possible. */
struct ghost {
	u32 mastery;
	u16 queue;
	struct nvme_command command;
};

static struct ghost ghosts[GHOSTS];
static unsigned int next_ghost;
/* The identifiers in each completion queue that were told of commands which are not fetched yet. */
static DECLARE_BITMAP(told[QUEUES], 1 << 16);
static struct submission sq[QUEUES];
static struct completion_queue cq[QUEUES];
static struct later waiting[LATER];
static unsigned int waiters;
static u8 *disks[NAMESPACES];
static u8 *buffer, *scratch;
static u32 configuration, status;
/* The identifiers of commands that complete when there is an event; which events are reported. */
static u16 event_requests[EVENT_REQUESTS];
static unsigned int event_count;
static u32 wanted_events;
static bool is_change_reported, is_change_pending;
static unsigned int known_attached, known_identity;
static unsigned long known_bytes;
static bool is_gone, is_failed;
/* That it was reset, and not enabled since. */
static bool is_fresh;
/*
 * The time for which it was enabled. It may say that it is not ready while it works, of which the driver
 * has no proof but that it forbids all access, and does so before it frees memory: as with an IOMMU, what
 * was allowed before is not allowed again when the driver lets it access other memory.
 */
static u32 enabled_for;
/* Whether a command may describe its memory by ranges: the same until it is enabled again. */
static bool takes_ranges;
static u64 back_at;

/* The sizes of blocks, as powers of two: those that the disks have, and those that the driver was told. */
static const unsigned int formats[NAMESPACES] = { 9, 12 };
static unsigned int shifts[NAMESPACES];

static u32 get(unsigned int at)
{
	return readl(bar + at);
}

/* Only if it is another value: a register is not written without need. */
static void put(unsigned int at, u32 value)
{
	if (readl(bar + at) != value)
		writel(value, bar + at);
}

static void forget_all(void)
{
	unsigned long at;

	memset(sq, 0, sizeof(sq));
	memset(cq, 0, sizeof(cq));
	memset(waiting, 0, sizeof(waiting));
	memset(told, 0, sizeof(told));
	waiters = 0;
	event_count = 0;
	wanted_events = 0;
	is_change_reported = false;
	is_change_pending = false;
	for (at = 0x1000; at + 4 <= bar_size && at < 0x1000 + 8 * QUEUES; at += 4)
		put(at, 0);
}

static void reset(void)
{
	forget_all();
	configuration = 0;
	status = 0;
	is_failed = false;
	is_fresh = true;
	put(NVME_REG_CC, 0);
	put(NVME_REG_CSTS, 0);
}

/* Notes that the driver is told of an event, so that it may ask for the next one. */
static bool forget_event_request(u16 cid)
{
	unsigned int i;

	for (i = 0; i < event_count; i++) {
		if (event_requests[i] == cid) {
			event_requests[i] = event_requests[--event_count];
			return true;
		}
	}
	return false;
}

/*
 * Notes that the driver is told that a command has completed. The memory of that is the driver's again
 * if it believes it, so it must not be accessed: nothing but an IOMMU could keep a device from that.
 */
static void tell(unsigned int id, u16 cid)
{
	bool is_fetched = false;
	unsigned int i;

	for (i = 0; i < LATER; i++) {
		struct later *it = &waiting[i];

		if (it->is_used && sq[it->queue].completion == id && it->command.common.command_id == cid) {
			is_fetched = true;
			it->is_told = true;
		}
	}
	if (!id && forget_event_request(cid))
		is_fetched = true;
	for (i = 0; i < GHOSTS; i++) {
		struct ghost *ghost = &ghosts[i];

		if (ghost->mastery && sq[ghost->queue].completion == id &&
		    ghost->command.common.command_id == cid) {
			is_fetched = true;
			ghost->mastery = 0;
		}
	}
	if (!is_fetched)
		set_bit(cid, told[id]);
}

static void raise_for(struct completion_queue *queue)
{
	queue->raised = jiffies;
	raise_interrupt();
}

/* Adds an entry; false if there is no room for it. */
static bool post(unsigned int id, u64 first, u32 sqhd_sqid, u16 cid, u16 code)
{
	struct completion_queue *queue = &cq[id];
	u64 entry[2], right;
	unsigned int i;
	u64 address;

	if (!queue->exists || (queue->tail + 1) % queue->entries == queue->head)
		return false;
	entry[0] = first;
	right = sqhd_sqid | (u64)cid << 32 | (u64)(code << 1 | queue->phase) << 48;
	entry[1] = right;
	address = queue->address + 16 * queue->tail;
	if (++queue->tail == queue->entries) {
		queue->tail = 0;
		queue->phase = !queue->phase;
	}
	access_memory(address, &entry[0], 8, true);
	access_memory(address + 8, &entry[1], 8, true);
	if (lie(LIE_changes)) {
		if (chance(2))
			raise_for(queue);
		for (i = 0; i < 50; i++) {
			entry[1] = right ^ (u64)chance(1U << 31) << 32;
			if ((u16)(entry[1] >> 32) != cid)
				tell(id, entry[1] >> 32);
			access_memory(address + 8, &entry[1], 8, true);
		}
		entry[1] = right;
		access_memory(address + 8, &entry[1], 8, true);
	}
	queue->lost = lie(LIE_irq_lost);
	if (queue->interrupts && !queue->lost)
		raise_for(queue);
	return true;
}

/* Tells of a command that has not completed. */
static void post_false(unsigned int id, u32 where, u16 cid, u16 code)
{
	tell(id, cid);
	post(id, random64(), where, cid, code);
}

static unsigned int some_queue(void)
{
	return chance(4) ? chance(2) : chance(QUEUES);
}

static void lie_about_entries(unsigned int id, u32 where, u16 cid)
{
	struct completion_queue *queue;
	u64 entry[2];
	unsigned int i;
	u32 at;

	if (lie(LIE_cid_unknown))
		post_false(id, where, random64(), 0);
	if (lie(LIE_cid_ahead))
		post_false(id, where, cid + 1 + chance(4), 0);
	if (lie(LIE_cid_stale))
		post_false(id, where, sq[id].cids[chance(REMEMBERED)], 0);
	if (lie(LIE_other_queue))
		post_false(some_queue(), where, cid, 0);
	if (lie(LIE_event_stray)) {
		forget_event_request(sq[0].entries - 1);
		post(0, random64(), where, sq[0].entries - 1, chance(2) ? 0 : random64());
	}
	id = some_queue();
	queue = &cq[id];
	if (!queue->exists)
		return;
	if (lie(LIE_phase)) {
		at = chance(2) ? queue->tail : chance(queue->entries);
		if (!access_memory(queue->address + 16 * at + 8, &entry[1], 8, false)) {
			entry[1] ^= 1ULL << 48;
			tell(id, entry[1] >> 32);
			access_memory(queue->address + 16 * at + 8, &entry[1], 8, true);
			raise_for(queue);
		}
	}
	if (lie(LIE_garbage)) {
		at = chance(2) ? queue->tail : chance(queue->entries);
		entry[0] = random64();
		entry[1] = random64();
		tell(id, entry[1] >> 32);
		access_memory(queue->address + 16 * at, entry, 16, true);
		raise_for(queue);
	}
	if (lie(LIE_flood)) {
		/* The phases look right for two rounds. */
		for (i = 0; i < 2 * queue->entries; i++) {
			at = (queue->tail + i) % queue->entries;
			entry[0] = random64();
			entry[1] = random64() & ~(1ULL << 48);
			if (queue->phase != (queue->tail + i >= queue->entries))
				entry[1] |= 1ULL << 48;
			if (chance(2))
				entry[1] = (entry[1] & ~(0xffffULL << 32)) |
					(u64)(u16)(cid + chance(64)) << 32;
			tell(id, entry[1] >> 32);
			access_memory(queue->address + 16 * at, entry, 16, true);
			if (!(i % 64))
				raise_for(queue);
		}
	}
}

static void add_later(u16 id, struct nvme_command *command, u64 delay, bool is_done, u16 code, u32 result)
{
	unsigned int i;

	for (i = 0; i < LATER && waiting[i].is_used; i++)
		;
	if (i == LATER)
		return;
	waiting[i] = (struct later) {
		.is_used = true,
		.is_done = is_done,
		.due = ktime_get_ns() + delay,
		.queue = id,
		.status = code,
		.result = result,
		.command = *command,
	};
	waiters++;
}

static void complete_command(u16 id, struct nvme_command *command, u16 code, u32 result)
{
	u16 cid = command->common.command_id;
	u32 where = id << 16 | sq[id].head;
	u64 first = result;

	lie_about_entries(sq[id].completion, where, cid);
	if (lie(LIE_status))
		code = random64();
	if (lie(LIE_retry))
		code = NVME_SC_INTERNAL | chance(4) << 11;
	if (lie(LIE_reserved))
		code = (4 + chance(4)) << 8 | chance(256) | chance(4) << 11 | chance(2) << 14;
	if (lie(LIE_sqhd)) {
		where = random64();
		first |= random64() << 32;
	}
	if (!post(sq[id].completion, first, where, cid, code)) {
		add_later(id, command, 1000000, true, code, result);
		return;
	}
	done++;
	sq[id].cids[sq[id].count++ % REMEMBERED] = cid;
	if (lie(LIE_cid_twice))
		post(sq[id].completion, first, where, cid, code);
}

/* Moves the data of a command that has a scatter-gather list. */
static int transfer_ranges(struct nvme_command *command, u8 *data, size_t len, bool to_memory)
{
	struct nvme_sgl_desc one = command->common.dptr.sgl;
	u64 list = le64_to_cpu(one.addr), count = 1;
	bool is_list = one.type == NVME_SGL_FMT_LAST_SEG_DESC << 4;
	int result = 0;

	if (is_list) {
		count = le32_to_cpu(one.length) / sizeof(one);
		if (le32_to_cpu(one.length) % sizeof(one) || list % sizeof(one))
			fault("a list of ranges is not one of descriptors", list);
	}
	while (len && count-- && !result) {
		size_t part;

		if (is_list) {
			result = access_memory(list, &one, sizeof(one), false);
			list += sizeof(one);
		}
		if (result)
			break;
		part = le32_to_cpu(one.length);
		if (one.type != NVME_SGL_FMT_DATA_DESC << 4 || !part || part > len)
			fault("a range is not one of the data", part);
		part = min(part, len);
		result = access_memory(le64_to_cpu(one.addr), data, part, to_memory);
		data += part;
		len -= part;
	}
	if (len && !result)
		fault("the ranges do not have all of the data", len);
	return result;
}

/* Moves the data of a command. */
static int transfer(struct nvme_command *command, u8 *data, size_t len, bool to_memory)
{
	u64 page = le64_to_cpu(command->common.dptr.prp1);
	u64 list = le64_to_cpu(command->common.dptr.prp2);
	size_t part = min_t(size_t, len, PAGE_BYTES - page % PAGE_BYTES);
	__le64 entry;
	int result;

	if (command->common.flags & NVME_CMD_SGL_METABUF)
		return transfer_ranges(command, data, len, to_memory);
	if (page % 4)
		fault("an address is not aligned", page);
	result = access_memory(page, data, part, to_memory);
	data += part;
	len -= part;
	if (len && len <= PAGE_BYTES) {
		if (list % PAGE_BYTES)
			fault("the second page has an offset", list);
		return result ?: access_memory(list, data, len, to_memory);
	}
	while (len && !result) {
		result = access_memory(list, &entry, 8, false);
		if (result)
			break;
		page = le64_to_cpu(entry);
		if (page % PAGE_BYTES)
			fault("a page in a list has an offset", page);
		if ((list + 8) % PAGE_BYTES == 0 && len > PAGE_BYTES) {
			list = page;
			continue;
		}
		list += 8;
		part = min_t(size_t, len, PAGE_BYTES);
		result = access_memory(page, data, part, to_memory);
		data += part;
		len -= part;
	}
	return result;
}

static u16 read_or_write(struct nvme_command *command)
{
	u32 nsid = le32_to_cpu(command->rw.nsid);
	u64 first = le64_to_cpu(command->rw.slba);
	u64 blocks = le16_to_cpu(command->rw.length) + 1;
	u64 begin, len;
	u8 *data;

	if (!nsid || nsid > NAMESPACES)
		return NVME_SC_INVALID_NS | NVME_STATUS_DNR;
	if (!shifts[nsid - 1])
		return NVME_SC_INVALID_NS | NVME_STATUS_DNR;
	begin = first << shifts[nsid - 1];
	len = blocks << shifts[nsid - 1];
	if (first > DISK_BYTES || begin + len > DISK_BYTES)
		return NVME_SC_LBA_RANGE | NVME_STATUS_DNR;
	data = disks[nsid - 1] + begin;
	if (command->common.opcode == nvme_cmd_write_zeroes) {
		memset(data, 0, len);
		return 0;
	}
	if (len > min_t(u64, MOST_BYTES, (u64)PAGE_BYTES << mdts))
		return NVME_SC_INVALID_FIELD | NVME_STATUS_DNR;
	if (transfer(command, data, len, command->common.opcode == nvme_cmd_read))
		return NVME_SC_DATA_XFER_ERROR;
	return 0;
}

static u16 discard(struct nvme_command *command)
{
	u32 nsid = le32_to_cpu(command->dsm.nsid);
	u32 ranges = (le32_to_cpu(command->dsm.nr) & 0xff) + 1;
	struct nvme_dsm_range *range = (struct nvme_dsm_range *)buffer;

	if (!nsid || nsid > NAMESPACES)
		return NVME_SC_INVALID_NS | NVME_STATUS_DNR;
	if (ranges_limit && ranges > ranges_limit) {
		fault("too many ranges", ranges);
		return NVME_SC_CMD_SIZE_LIM_EXCEEDED | NVME_STATUS_DNR;
	}
	/* All of the page, as some controllers do. */
	if (transfer(command, buffer, PAGE_BYTES, false))
		return NVME_SC_DATA_XFER_ERROR;
	for (; ranges--; range++) {
		u64 begin = le64_to_cpu(range->slba) << shifts[nsid - 1];
		u64 len = (u64)le32_to_cpu(range->nlb) << shifts[nsid - 1];

		if (begin > DISK_BYTES || len > DISK_BYTES || begin + len > DISK_BYTES)
			return NVME_SC_LBA_RANGE | NVME_STATUS_DNR;
		memset(disks[nsid - 1] + begin, 0, len);
	}
	return 0;
}

static u16 serve_io(struct nvme_command *command)
{
	if (command->common.flags & NVME_CMD_SGL_METABUF && !takes_ranges && !lie_is_set(LIE_random))
		fault("ranges, which it does not take", command->common.opcode);
	switch (command->common.opcode) {
	case nvme_cmd_flush:
		return 0;
	case nvme_cmd_read:
	case nvme_cmd_write:
	case nvme_cmd_write_zeroes:
		return read_or_write(command);
	case nvme_cmd_dsm:
		return discard(command);
	}
	return NVME_SC_INVALID_OPCODE | NVME_STATUS_DNR;
}

static void identify_controller(struct nvme_id_ctrl *id)
{
	memcpy(id->sn, "hostile             ", sizeof(id->sn));
	memset(id->mn, ' ', sizeof(id->mn));
	memcpy(id->mn, "soft controller", 15);
	memcpy(id->fr, "1       ", sizeof(id->fr));
	strscpy(id->subnqn, "nqn.2014-08.org.nvmexpress:soft");
	id->mdts = mdts;
	id->cntlid = cpu_to_le16(1);
	id->ver = cpu_to_le32(NVME_VS(1, 4, 0));
	id->acl = 3;
	id->aerl = EVENT_REQUESTS - 1;
	id->oaes = cpu_to_le32(NVME_AEN_CFG_NS_ATTR | NVME_AEN_CFG_FW_ACT);
	id->sqes = 0x66;
	id->cqes = 0x44;
	id->nn = cpu_to_le32(NAMESPACES);
	id->oncs = cpu_to_le16(commands);
	id->vwc = has_cache ? NVME_CTRL_VWC_PRESENT : 0;
	id->sgls = cpu_to_le32(takes_ranges);
}

static bool is_attached(u32 nsid)
{
	return nsid && nsid <= NAMESPACES && known_attached & 1 << (nsid - 1);
}

static void identify_namespace(struct nvme_id_ns *id, u32 nsid)
{
	if (!is_attached(nsid))
		return;
	id->nsze = cpu_to_le64(known_bytes >> formats[nsid - 1]);
	id->ncap = id->nsze;
	id->nuse = id->nsze;
	id->nlbaf = 1;
	id->flbas = nsid - 1;
	id->dlfeat = 1 | 1 << 3;
	id->nsfeat = NVME_NS_FEAT_ATOMICS;
	id->nawupf = cpu_to_le16(5);
	id->nabspf = cpu_to_le16(15);
	if (preferred) {
		id->nsfeat |= 1 << 4;
		id->npwg = cpu_to_le16(preferred - 1);
	}
	id->lbaf[0].ds = 9;
	id->lbaf[1].ds = 12;
}

static void remember_format(struct nvme_id_ns *id, u32 nsid)
{
	u8 shift = id->lbaf[(id->flbas & 0xf) | (id->flbas & 0x60) >> 1].ds;

	if (nsid && nsid <= NAMESPACES && shift >= 9 && shift <= 16)
		shifts[nsid - 1] = shift;
}

static u16 identify(struct nvme_command *command)
{
	u32 nsid = le32_to_cpu(command->identify.nsid), i, n = 0;

	memset(buffer, 0, PAGE_BYTES);
	switch (command->identify.cns) {
	case NVME_ID_CNS_NS:
		identify_namespace((struct nvme_id_ns *)buffer, nsid);
		break;
	case NVME_ID_CNS_CTRL:
		identify_controller((struct nvme_id_ctrl *)buffer);
		break;
	case NVME_ID_CNS_NS_ACTIVE_LIST:
		for (i = nsid + 1; i <= NAMESPACES && i; i++)
			if (is_attached(i))
				((__le32 *)buffer)[n++] = cpu_to_le32(i);
		break;
	case NVME_ID_CNS_NS_DESC_LIST:
		buffer[0] = NVME_NIDT_UUID;
		buffer[1] = NVME_NIDT_UUID_LEN;
		memset(buffer + 4, nsid + known_identity, NVME_NIDT_UUID_LEN);
		break;
	case NVME_ID_CNS_CS_CTRL:
		if (ranges_limit) {
			((struct nvme_id_ctrl_nvm *)buffer)->dmrl = ranges_limit;
			break;
		}
		fallthrough;
	default:
		return NVME_SC_INVALID_FIELD | NVME_STATUS_DNR;
	}
	answer_falsely(command, buffer);
	if (command->identify.cns == NVME_ID_CNS_NS)
		remember_format((struct nvme_id_ns *)buffer, nsid);
	return transfer(command, buffer, PAGE_BYTES, true) ? NVME_SC_DATA_XFER_ERROR : 0;
}

static u16 set_features(struct nvme_command *command, u32 *result)
{
	u32 asked = le32_to_cpu(command->features.dword11), most;

	if (le32_to_cpu(command->features.fid) == NVME_FEAT_ASYNC_EVENT) {
		wanted_events = asked;
		return 0;
	}
	if (le32_to_cpu(command->features.fid) != NVME_FEAT_NUM_QUEUES)
		return NVME_SC_INVALID_FIELD | NVME_STATUS_DNR;
	if (lie(LIE_no_queues))
		return random64() | NVME_SC_INVALID_FIELD;
	most = min(asked & 0xffff, QUEUES - 2U);
	*result = most << 16 | most;
	if (lie(LIE_queues))
		*result = chance(2) ? random64() : chance(2) ? ~0 : 0;
	return 0;
}

static u16 create_completion_queue(struct nvme_command *command)
{
	u16 id = le16_to_cpu(command->create_cq.cqid);
	struct completion_queue *queue;

	if (!id || id >= QUEUES || cq[id].exists)
		return NVME_SC_QID_INVALID | NVME_STATUS_DNR;
	queue = &cq[id];
	*queue = (struct completion_queue) {
		.exists = true,
		.interrupts = le16_to_cpu(command->create_cq.cq_flags) & NVME_CQ_IRQ_ENABLED,
		.address = le64_to_cpu(command->create_cq.prp1),
		.entries = le16_to_cpu(command->create_cq.qsize) + 1,
		.phase = true,
	};
	if (queue->entries > QUEUE_ENTRIES || queue->entries < 2 || queue->address % PAGE_BYTES)
		fault("a completion queue is not valid", queue->entries);
	put(0x1000 + 8 * id + 4, 0);
	return 0;
}

static u16 create_submission_queue(struct nvme_command *command)
{
	u16 id = le16_to_cpu(command->create_sq.sqid);
	u16 to = le16_to_cpu(command->create_sq.cqid);
	struct submission *queue;

	if (!id || id >= QUEUES || sq[id].exists)
		return NVME_SC_QID_INVALID | NVME_STATUS_DNR;
	if (!to || to >= QUEUES || !cq[to].exists)
		return NVME_SC_CQ_INVALID | NVME_STATUS_DNR;
	queue = &sq[id];
	memset(queue, 0, sizeof(*queue));
	queue->exists = true;
	queue->address = le64_to_cpu(command->create_sq.prp1);
	queue->entries = le16_to_cpu(command->create_sq.qsize) + 1;
	queue->completion = to;
	if (queue->entries > QUEUE_ENTRIES || queue->entries < 2 || queue->address % PAGE_BYTES)
		fault("a submission queue is not valid", queue->entries);
	put(0x1000 + 8 * id, 0);
	return 0;
}

static u16 delete_queue(struct nvme_command *command)
{
	u16 id = le16_to_cpu(command->delete_queue.qid);

	if (!id || id >= QUEUES)
		return NVME_SC_QID_INVALID | NVME_STATUS_DNR;
	if (command->common.opcode == nvme_admin_delete_cq)
		cq[id].exists = false;
	else
		sq[id].exists = false;
	return 0;
}

/* Completes a command that waits for events, if there is one. */
static bool report(u32 result, u16 code)
{
	if (!event_count)
		return false;
	return post(0, result, 0, event_requests[--event_count], code);
}

/* Returns false if there is no answer yet. */
static bool add_event_request(struct nvme_command *command, u16 *code, u32 *result)
{
	if (lie(LIE_event_flood)) {
		*result = chance(2) ? NAMESPACES_CHANGED : random64();
		return true;
	}
	if (lie(LIE_event_fails)) {
		*code = NVME_SC_ASYNC_LIMIT;
		return true;
	}
	if (event_count == EVENT_REQUESTS) {
		fault("too many requests for events", event_count);
		return true;
	}
	event_requests[event_count++] = command->common.command_id;
	return false;
}

/* An event of changed namespaces is reported once, until its page is read. */
static void watch_changes(void)
{
	unsigned int now = READ_ONCE(attached), who = READ_ONCE(identity);
	unsigned int result = READ_ONCE(event);
	unsigned long bytes = min(READ_ONCE(disk_bytes), DISK_BYTES);

	if (now != known_attached || who != known_identity || bytes != known_bytes) {
		known_attached = now;
		known_identity = who;
		known_bytes = bytes;
		is_change_pending = wanted_events & NVME_AEN_CFG_NS_ATTR;
	}
	if (is_change_pending && !is_change_reported && report(NAMESPACES_CHANGED, 0)) {
		is_change_pending = false;
		is_change_reported = true;
	}
	if (result && report(result, 0))
		WRITE_ONCE(event, 0);
}

static u16 get_log(struct nvme_command *command)
{
	size_t len = (le16_to_cpu(command->get_log_page.numdl) + 1UL) * 4;

	if (len > PAGE_BYTES)
		return NVME_SC_INVALID_FIELD | NVME_STATUS_DNR;
	memset(buffer, 0, PAGE_BYTES);
	if (command->get_log_page.lid == NVME_LOG_CHANGED_NS) {
		*(__le32 *)buffer = cpu_to_le32(~0);
		is_change_reported = false;
	}
	return transfer(command, buffer, len, true) ? NVME_SC_DATA_XFER_ERROR : 0;
}

/* Ends a command that waits, if it is there. Bit 0 of the result says that it was not. */
static u32 abort_command(struct nvme_command *command)
{
	u16 queue = le16_to_cpu(command->abort.sqid), cid = command->abort.cid;
	unsigned int i;

	for (i = 0; i < LATER; i++) {
		struct later *it = &waiting[i];

		if (it->is_used && !it->is_done && it->queue == queue &&
		    it->command.common.command_id == cid) {
			it->is_done = true;
			it->status = NVME_SC_ABORT_REQ;
			it->due = 0;
			return 0;
		}
	}
	return 1;
}

/* Returns false if there is no answer yet. */
static bool serve_admin(struct nvme_command *command, u16 *code, u32 *result)
{
	if (lie(LIE_admin_fails)) {
		*code = 1 + chance(0x7ff);
		return true;
	}
	switch (command->common.opcode) {
	case nvme_admin_identify:
		*code = identify(command);
		break;
	case nvme_admin_set_features:
		*code = set_features(command, result);
		break;
	case nvme_admin_create_cq:
		*code = create_completion_queue(command);
		break;
	case nvme_admin_create_sq:
		*code = create_submission_queue(command);
		break;
	case nvme_admin_delete_cq:
	case nvme_admin_delete_sq:
		*code = delete_queue(command);
		break;
	case nvme_admin_get_log_page:
		*code = get_log(command);
		break;
	case nvme_admin_abort_cmd:
		if (lie(LIE_abort)) {
			*result = random64();
			*code = chance(2) ? 0 : random64();
		} else {
			*result = abort_command(command);
		}
		break;
	case nvme_admin_async_event:
		return add_event_request(command, code, result);
	default:
		*code = NVME_SC_INVALID_OPCODE | NVME_STATUS_DNR;
	}
	return true;
}

/* Accesses the memory of a command which the driver cannot have back: it never completed. */
static void haunt(struct ghost *ghost)
{
	struct nvme_command *command = &ghost->command;
	u32 nsid = le32_to_cpu(command->rw.nsid);
	size_t len = PAGE_BYTES;
	bool to_memory;

	if (!ghost->mastery)
		return;
	if (ghost->mastery != mastery()) {
		ghost->mastery = 0;
		return;
	}
	if (ghost->queue) {
		to_memory = command->common.opcode == nvme_cmd_read;
		if (!nsid || nsid > NAMESPACES || !shifts[nsid - 1])
			return;
		if (to_memory || command->common.opcode == nvme_cmd_write)
			len = (le16_to_cpu(command->rw.length) + 1UL) << shifts[nsid - 1];
		else if (command->common.opcode != nvme_cmd_dsm)
			return;
		if (len > MOST_BYTES)
			return;
	} else {
		to_memory = true;
		if (command->common.opcode != nvme_admin_identify)
			return;
	}
	only_while(ghost->mastery);
	transfer(command, scratch, len, to_memory);
	only_while(0);
}

static void haunt_all(void)
{
	unsigned int i;

	for (i = 0; i < GHOSTS; i++)
		haunt(&ghosts[i]);
}

static void carry_out(u16 id, struct nvme_command *command)
{
	u16 code = 0;
	u32 result = 0;

	if (lie(LIE_never))
		return;
	if (lie(LIE_haunt)) {
		struct ghost *ghost = &ghosts[next_ghost++ % GHOSTS];

		ghost->mastery = mastery();
		ghost->queue = id;
		ghost->command = *command;
		return;
	}
	if (lie(LIE_cfs)) {
		is_failed = true;
		return;
	}
	if (lie(LIE_gone) || lie(LIE_flap)) {
		is_gone = true;
		back_at = ktime_get_ns() + (1 + chance(20)) * NSEC_PER_MSEC;
		return;
	}
	if (lie(LIE_early)) {
		complete_command(id, command, 0, random64());
		return;
	}
	if (id)
		code = serve_io(command);
	else if (!serve_admin(command, &code, &result))
		return;
	complete_command(id, command, code, result);
}

static void fetch(u16 id)
{
	struct submission *queue = &sq[id];
	struct nvme_command command;

	if (access_memory(queue->address + 64 * queue->head, &command, 64, false))
		return;
	if (++queue->head == queue->entries)
		queue->head = 0;
	if (test_and_clear_bit(command.common.command_id, told[queue->completion]))
		complete_command(id, &command, NVME_SC_ABORT_REQ, 0);
	else if ((late_aborts || id || command.common.opcode != nvme_admin_abort_cmd) &&
		 lie(LIE_late))
		add_later(id, &command, (chance(8) ? chance(5) : chance(2500)) * (u64)NSEC_PER_MSEC, false,
			  0, 0);
	else
		carry_out(id, &command);
}

static bool serve_queue(u16 id)
{
	unsigned int limit = 64;
	u32 tail;

	if (!sq[id].exists)
		return false;
	tail = get(0x1000 + 8 * id);
	if (tail >= sq[id].entries) {
		if (tail != ~0U)
			fault("a tail is beyond the queue", tail);
		return false;
	}
	if (sq[id].head == tail)
		return false;
	while (sq[id].exists && sq[id].head != tail && limit-- && !is_gone && !is_failed)
		fetch(id);
	return true;
}

static void watch_completions(u16 id)
{
	struct completion_queue *queue = &cq[id];
	u32 head;

	if (!queue->exists)
		return;
	head = get(0x1000 + 8 * id + 4);
	if (head >= queue->entries) {
		if (head != ~0U)
			fault("a head is beyond the queue", head);
		return;
	}
	queue->head = head;
	/* The line stays active until all entries were taken. */
	if (queue->interrupts && queue->head != queue->tail && !queue->lost &&
	    time_after(jiffies, queue->raised))
		raise_for(queue);
}

static void serve_waiting(void)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < LATER && waiters; i++) {
		struct later *it = &waiting[i];
		struct later copy;

		if (!it->is_used || it->due > now)
			continue;
		copy = *it;
		it->is_used = false;
		waiters--;
		if (!sq[copy.queue].exists)
			continue;
		if (copy.is_told && !copy.is_done)
			complete_command(copy.queue, &copy.command, NVME_SC_ABORT_REQ, 0);
		else if (copy.is_done)
			complete_command(copy.queue, &copy.command, copy.status, copy.result);
		else
			carry_out(copy.queue, &copy.command);
	}
}

static void enable(void)
{
	u32 attributes = get(NVME_REG_AQA);

	forget_all();
	sq[0] = (struct submission) {
		.exists = true,
		.entries = (attributes & 0xfff) + 1,
		.address = get(NVME_REG_ASQ) | (u64)get(NVME_REG_ASQ + 4) << 32,
	};
	cq[0] = (struct completion_queue) {
		.exists = true,
		.interrupts = true,
		.entries = (attributes >> 16 & 0xfff) + 1,
		.address = get(NVME_REG_ACQ) | (u64)get(NVME_REG_ACQ + 4) << 32,
		.phase = true,
	};
	if (sq[0].address % PAGE_BYTES || cq[0].address % PAGE_BYTES)
		fault("an admin queue is not aligned", sq[0].address);
	is_failed = false;
	is_fresh = false;
	enabled_for = mastery();
	takes_ranges = sgls > 1 ? chance(2) : sgls;
	status = NVME_CSTS_RDY;
}

static void watch_registers(void)
{
	/* Half seconds until it is ready: enough for a machine that is busy, if it is going to be. */
	bool short_time = lie_is_set(LIE_rdy_never) || lie_is_set(LIE_rdy_always) ||
			  lie_is_set(LIE_rdy_stuck);
	u64 timeout = short_time ? 2 : 10;
	u64 cap = (QUEUE_ENTRIES - 1) | 1 << 16 | timeout << 24 | 1ULL << 37;
	u32 shown, written = get(NVME_REG_CC);

	cap = lie_about_capabilities(cap);
	put(NVME_REG_CAP, cap);
	put(NVME_REG_CAP + 4, cap >> 32);
	put(NVME_REG_VS, lie(LIE_version) ? random64() : NVME_VS(1, 4, 0));
	if (written != configuration) {
		if ((written ^ configuration) & NVME_CC_ENABLE) {
			if (written & NVME_CC_ENABLE) {
				enable();
			} else {
				forget_all();
				is_failed = false;
				status = 0;
			}
		}
		if (written & NVME_CC_SHN_MASK)
			status = (status & ~NVME_CSTS_SHST_MASK) | NVME_CSTS_SHST_CMPLT;
		else
			status &= ~NVME_CSTS_SHST_MASK;
		configuration = written;
	}
	shown = status;
	if (is_failed)
		shown |= NVME_CSTS_CFS;
	if (lie_is_set(LIE_rdy_never))
		shown &= ~NVME_CSTS_RDY;
	if (lie_is_set(LIE_rdy_always) || (lie_is_set(LIE_rdy_stuck) && !is_fresh))
		shown |= NVME_CSTS_RDY;
	if (lie_is_set(LIE_shst_never))
		shown &= ~NVME_CSTS_SHST_MASK;
	if (lie(LIE_csts))
		shown = random64() & 0x7f;
	put(NVME_REG_CSTS, shown);
}

/* All ones, as of a device that was pulled out. */
static void stay_away(void)
{
	unsigned long at;

	set_gone(true);
	for (at = 0; at + 4 <= bar_size && at < 0x1000 + 8 * QUEUES; at += 4)
		put(at, ~0);
	if ((lie_is_set(LIE_gone) && !lie_is_set(LIE_flap)) || ktime_get_ns() < back_at)
		return;
	for (at = 0; at + 4 <= bar_size && at < 0x1000 + 8 * QUEUES; at += 4)
		put(at, 0);
	is_gone = false;
	reset();
	set_gone(false);
}

/* Looks at everything once; returns whether there was anything to do. */
bool poll_controller(void)
{
	bool busy = waiters;
	unsigned int i;

	if (apply_new_lies())
		pr_debug("hostile: other lies\n");
	if (take_reset_request())
		reset();
	if (is_gone) {
		stay_away();
		return false;
	}
	watch_registers();
	/* Also while it is disabled. */
	haunt_all();
	if (!(status & NVME_CSTS_RDY) || is_failed)
		return false;
	only_while(enabled_for);
	for (i = 0; i < QUEUES; i++) {
		watch_completions(i);
		busy |= serve_queue(i);
	}
	serve_waiting();
	watch_changes();
	only_while(0);
	if (lie(LIE_irq_none))
		raise_interrupt();
	if (lie(LIE_irq_storm))
		for (i = 0; i < 500; i++)
			raise_interrupt();
	return busy;
}

int make_disks(void)
{
	unsigned int i;

	buffer = kzalloc(PAGE_BYTES, GFP_KERNEL);
	scratch = vzalloc(MOST_BYTES);
	if (!buffer || !scratch)
		return -ENOMEM;
	for (i = 0; i < NAMESPACES; i++) {
		disks[i] = vzalloc(DISK_BYTES);
		if (!disks[i])
			return -ENOMEM;
	}
	return 0;
}

void free_disks(void)
{
	unsigned int i;

	for (i = 0; i < NAMESPACES; i++)
		vfree(disks[i]);
	vfree(scratch);
	kfree(buffer);
}
