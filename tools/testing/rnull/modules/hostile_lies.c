// SPDX-License-Identifier: GPL-2.0
/*
 * What the controller lies about, and how often: "NAME RATE", written to the parameter `lie`, has it
 * lie RATE times of a thousand chances; "mix SEED" chooses several lies; "none" ends all. What is
 * chosen depends on the parameter `seed` only, but not what the driver does in between.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#include "hostile.h"

#define LIE(name)	#name,
static const char *const names[] = {
#include "hostile_names.h"
};

#undef LIE

static u16 rates[LIE_COUNT];
static unsigned long told[LIE_COUNT];
static struct rnd_state state;
static u64 cap_seed;
static bool is_new = true;

static int set_seed(const char *text, const struct kernel_param *param)
{
	u64 seed;
	int result = kstrtou64(text, 0, &seed);

	if (!result)
		prandom_seed_state(&state, seed);
	return result;
}

static const struct kernel_param_ops seed_ops = { .set = set_seed };
module_param_cb(seed, &seed_ops, NULL, 0200);

static void clear(void)
{
	unsigned int i;

	for (i = 0; i < LIE_COUNT; i++)
		WRITE_ONCE(rates[i], 0);
	memset(told, 0, sizeof(told));
}

/* A few lies, most of them rare. */
static void mix(u64 seed)
{
	unsigned int i, count;

	prandom_seed_state(&state, seed);
	count = 1 + chance(6);
	for (i = 0; i < count; i++) {
		static const u16 choices[] = { 1, 3, 10, 30, 100, 300, 1000 };

		WRITE_ONCE(rates[chance(LIE_COUNT)], choices[chance(ARRAY_SIZE(choices))]);
	}
}

static int set_lie(const char *text, const struct kernel_param *param)
{
	unsigned long long rate = 0;
	char name[32];
	unsigned int i;
	int words = sscanf(text, "%31s %llu", name, &rate);

	if (words >= 1 && !strcmp(name, "none")) {
		clear();
		goto changed;
	}
	if (words != 2)
		return -EINVAL;
	if (!strcmp(name, "mix")) {
		clear();
		mix(rate);
		goto changed;
	}
	for (i = 0; i < LIE_COUNT; i++) {
		if (!strcmp(name, names[i])) {
			WRITE_ONCE(rates[i], min(rate, 1000ULL));
			goto changed;
		}
	}
	return -EINVAL;
changed:
	/* Pairs with the load in apply_new_lies(): the lies are seen whole. */
	smp_store_release(&is_new, true);
	return 0;
}

static int get_lie(char *text, const struct kernel_param *param)
{
	unsigned int i;
	int len = 0;

	for (i = 0; i < LIE_COUNT; i++)
		if (READ_ONCE(rates[i]))
			len += scnprintf(text + len, PAGE_SIZE - len, "%s %u, told %lu; ", names[i],
					 rates[i], READ_ONCE(told[i]));
	return len + scnprintf(text + len, PAGE_SIZE - len, "\n");
}

static const struct kernel_param_ops lie_ops = { .set = set_lie, .get = get_lie };
module_param_cb(lie, &lie_ops, NULL, 0600);

static int get_names(char *text, const struct kernel_param *param)
{
	unsigned int i;
	int len = 0;

	for (i = 0; i < LIE_COUNT; i++)
		len += scnprintf(text + len, PAGE_SIZE - len, "%s\n", names[i]);
	return len;
}

static const struct kernel_param_ops names_ops = { .get = get_names };
module_param_cb(names, &names_ops, NULL, 0400);

/* Returns whether other lies were chosen since the last call. */
bool apply_new_lies(void)
{
	/* Pairs with the store after the lies were parsed. */
	if (!smp_load_acquire(&is_new))
		return false;
	WRITE_ONCE(is_new, false);
	cap_seed = random64();
	return true;
}

u64 random64(void)
{
	u64 high = prandom_u32_state(&state);

	return high << 32 | prandom_u32_state(&state);
}

/* Returns a number from 0 to below - 1. */
u32 chance(u32 below)
{
	return prandom_u32_state(&state) % below;
}

/* Is it told now? */
bool lie(enum lie which)
{
	u16 rate = READ_ONCE(rates[which]);

	if (!rate || chance(1000) >= rate)
		return false;
	told[which]++;
	return true;
}

/* Is it told all the time? */
bool lie_is_set(enum lie which)
{
	if (!READ_ONCE(rates[which]))
		return false;
	told[which]++;
	return true;
}

/* The most time that the controller may take to become ready, for which a test would have to wait. */
#define TIMEOUT	(0xffULL << 24)

/* The same until other lies are chosen. */
u64 lie_about_capabilities(u64 cap)
{
	if (lie_is_set(LIE_cap_ones))
		return ~0ULL;
	if (lie_is_set(LIE_cap_random))
		return (cap_seed & ~TIMEOUT) | (cap & TIMEOUT);
	if (lie_is_set(LIE_cap_queue))
		cap = (cap & ~0xffffULL) | (cap_seed & 7);
	if (lie_is_set(LIE_cap_stride))
		cap |= (1 + cap_seed % 15) << 32;
	if (lie_is_set(LIE_cap_page))
		cap |= (1 + cap_seed % 15) << 48 | 15ULL << 52;
	return cap;
}

static u64 extreme(void)
{
	static const u64 values[] = {
		0, 1, 7, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32, 1ULL << 54,
		1ULL << 55, 1ULL << 62, 1ULL << 63, S64_MAX, U64_MAX - 1, U64_MAX
	};

	return values[chance(ARRAY_SIZE(values))] >> (chance(4) ? 0 : chance(64));
}

static void fill(void *to, size_t len)
{
	u8 *bytes = to;

	while (len--)
		*bytes++ = prandom_u32_state(&state);
}

static void about_controller(struct nvme_id_ctrl *id)
{
	if (lie(LIE_mdts)) {
		static const u8 values[] = { 0, 1, 2, 8, 11, 19, 20, 31, 32, 63, 255 };

		id->mdts = values[chance(ARRAY_SIZE(values))];
	}
	if (lie(LIE_strings)) {
		fill(id->sn, sizeof(id->sn));
		memset(id->mn, chance(2) ? 0xff : '%', sizeof(id->mn));
		fill(id->fr, sizeof(id->fr));
		memset(id->subnqn, 'x', sizeof(id->subnqn));
	}
	if (lie(LIE_count)) {
		id->nn = cpu_to_le32(extreme());
		id->mnan = cpu_to_le32(chance(2) ? extreme() : 0);
	}
	if (lie(LIE_identify)) {
		switch (chance(5)) {
		case 0:
			id->sqes = prandom_u32_state(&state);
			break;
		case 1:
			id->cqes = prandom_u32_state(&state);
			break;
		case 2:
			id->vwc = prandom_u32_state(&state);
			id->oncs = cpu_to_le16(prandom_u32_state(&state));
			break;
		case 3:
			id->rtd3e = cpu_to_le32(extreme());
			id->crdt1 = cpu_to_le16(extreme());
			id->crdt2 = cpu_to_le16(extreme());
			id->crdt3 = cpu_to_le16(extreme());
			break;
		case 4:
			fill((u8 *)id + 256, 32);
			break;
		}
	}
}

static void about_namespace(struct nvme_id_ns *id)
{
	if (lie(LIE_capacity)) {
		id->nsze = cpu_to_le64(extreme());
		id->ncap = cpu_to_le64(chance(2) ? le64_to_cpu(id->nsze) : extreme());
	}
	if (lie(LIE_blocks)) {
		static const u8 values[] = { 0, 1, 8, 9, 10, 12, 13, 14, 15, 16, 17, 31, 32, 63, 64, 255 };
		u8 shift = values[chance(ARRAY_SIZE(values))];
		unsigned int i;

		for (i = 0; i < 64; i++)
			id->lbaf[i].ds = shift;
	}
	if (lie(LIE_format)) {
		switch (chance(3)) {
		case 0:
			id->flbas = prandom_u32_state(&state);
			break;
		case 1:
			id->nlbaf = extreme();
			id->flbas = prandom_u32_state(&state);
			break;
		case 2:
			id->lbaf[id->flbas & 15].ms = cpu_to_le16(1 + chance(65535));
			break;
		}
	}
	if (lie(LIE_preferred)) {
		id->nsfeat |= 1 << 4;
		id->npwg = cpu_to_le16(extreme());
		id->npwa = cpu_to_le16(extreme());
		id->npdg = cpu_to_le16(extreme());
		id->npda = cpu_to_le16(extreme());
		id->nows = cpu_to_le16(extreme());
		id->noiob = cpu_to_le16(extreme());
		id->dlfeat = prandom_u32_state(&state);
	}
}

static void about_list(__le32 *list, u32 after)
{
	unsigned int i;

	if (!lie(LIE_list))
		return;
	switch (chance(5)) {
	case 0: /* Endless. */
		for (i = 0; i < 1024; i++)
			list[i] = cpu_to_le32(after + 1 + i);
		break;
	case 1: /* The same number again and again. */
		for (i = 0; i < 1024; i++)
			list[i] = cpu_to_le32(1);
		break;
	case 2: /* Descending. */
		for (i = 0; i < 1024; i++)
			list[i] = cpu_to_le32(~i);
		break;
	case 3: /* Large numbers. */
		for (i = 0; i < 1024; i++)
			list[i] = cpu_to_le32(-2000 + 3 * i);
		break;
	case 4:
		fill(list, PAGE_BYTES);
		break;
	}
}

static void about_descriptors(u8 *list)
{
	static const u8 lengths[] = { 0, 1, 7, 8, 15, 16, 17, 255 };
	unsigned int at = 0;

	if (!lie(LIE_descriptors))
		return;
	fill(list, PAGE_BYTES);
	while (at + 4 < PAGE_BYTES) {
		list[at] = 1 + chance(chance(8) ? 4 : 255);
		list[at + 1] = lengths[chance(ARRAY_SIZE(lengths))];
		if (chance(4))
			list[at + 1] = list[at] == 1 ? 8 : list[at] == 4 ? 1 : 16;
		at += 4 + list[at + 1];
	}
	if (!chance(2)) {
		/* The last one reaches beyond the end. */
		list[PAGE_BYTES - 4] = 3;
		list[PAGE_BYTES - 3] = 16;
	}
}

/* Changes the right answer to Identify, of a page. */
void answer_falsely(struct nvme_command *command, void *answer)
{
	if (lie(LIE_random)) {
		fill(answer, PAGE_BYTES);
		return;
	}
	switch (command->identify.cns) {
	case NVME_ID_CNS_NS:
		about_namespace(answer);
		break;
	case NVME_ID_CNS_CTRL:
		about_controller(answer);
		break;
	case NVME_ID_CNS_NS_ACTIVE_LIST:
		about_list(answer, le32_to_cpu(command->identify.nsid));
		break;
	case NVME_ID_CNS_NS_DESC_LIST:
		about_descriptors(answer);
		break;
	}
}
