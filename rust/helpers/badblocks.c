// SPDX-License-Identifier: GPL-2.0
/* A table of bad blocks, which the bindings do not know. */

#include <linux/badblocks.h>
#include <linux/irqflags.h>
#include <linux/slab.h>

/* rust/kernel/block/badblocks.rs repeats where the positions of a table end. */
static_assert(BB_OFFSET_MASK >> 9 == (1ULL << 54) - 1);

__rust_helper struct badblocks *rust_helper_badblocks_alloc(void)
{
	struct badblocks *bb = kzalloc(sizeof(*bb), GFP_KERNEL);

	if (bb && badblocks_init(bb, 1)) {
		kfree(bb);
		bb = NULL;
	}
	return bb;
}

__rust_helper void rust_helper_badblocks_free(struct badblocks *bb)
{
	badblocks_exit(bb);
	kfree(bb);
}

__rust_helper bool rust_helper_badblocks_set(struct badblocks *bb, u64 at,
					     u64 len)
{
	return badblocks_set(bb, at, len, 1);
}

/* It would enable interrupts, where only those who disabled them may. */
__rust_helper int rust_helper_badblocks_clear(struct badblocks *bb, u64 at,
					      u64 len)
{
	if (irqs_disabled())
		return -EBUSY;
	return badblocks_clear(bb, at, len) ? 0 : -ENOSPC;
}

/*
 * Finds the first entry that ends after @at, which is where @start to @end then
 * are. badblocks_check() is no use: it counts in int, so in a range of more than
 * 2^31 sectors it goes astray.
 */
__rust_helper bool rust_helper_badblocks_next(struct badblocks *bb, u64 at,
					      u64 *start, u64 *end)
{
	unsigned int seq;
	bool found;

	do {
		int low = 0, high;

		seq = read_seqbegin(&bb->lock);
		high = READ_ONCE(bb->count);
		found = false;
		while (low < high) {
			int middle = low + (high - low) / 2;
			u64 entry = READ_ONCE(bb->page[middle]);

			if (BB_END(entry) <= at) {
				low = middle + 1;
				continue;
			}
			*start = BB_OFFSET(entry);
			*end = BB_END(entry);
			found = true;
			high = middle;
		}
	} while (read_seqretry(&bb->lock, seq));
	return found;
}
