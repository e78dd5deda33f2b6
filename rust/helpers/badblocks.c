// SPDX-License-Identifier: GPL-2.0
/* Access to struct badblocks, which the bindings do not know. */

#include <linux/badblocks.h>
#include <linux/irqflags.h>
#include <linux/slab.h>

#ifdef CONFIG_BLOCK

/* rust/kernel/block/badblocks.rs repeats the encoding of an entry. */
static_assert(BB_OFFSET_MASK == ((1ULL << 54) - 1) << 9);
static_assert(BB_LEN_MASK == 511 && BB_LEN(0) == 1);

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

/*
 * badblocks_clear() enables interrupts, which only the code that disabled them may do.
 * The patch "badblocks: leave interrupts as they are when clearing" fixes that.
 */
__rust_helper int rust_helper_badblocks_clear(struct badblocks *bb, u64 at,
					      u64 len)
{
	if (irqs_disabled())
		return -EBUSY;
	return badblocks_clear(bb, at, len) ? 0 : -ENOSPC;
}

__rust_helper unsigned int rust_helper_badblocks_read_begin(struct badblocks *bb)
{
	return read_seqbegin(&bb->lock);
}

__rust_helper bool rust_helper_badblocks_read_retry(struct badblocks *bb,
						    unsigned int seq)
{
	return read_seqretry(&bb->lock, seq);
}

__rust_helper int rust_helper_badblocks_count(struct badblocks *bb)
{
	return READ_ONCE(bb->count);
}

__rust_helper u64 rust_helper_badblocks_entry(struct badblocks *bb, int index)
{
	return READ_ONCE(bb->page[index]);
}

#endif /* CONFIG_BLOCK */
