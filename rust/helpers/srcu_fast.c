// SPDX-License-Identifier: GPL-2.0
/* Helpers for SRCU whose readers execute no barrier. */

#include <linux/srcu.h>

__rust_helper int rust_helper_srcu_fast_init(struct srcu_struct *ssp,
					     const char *name,
					     struct lock_class_key *key)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	return __init_srcu_struct_fast(ssp, name, key);
#else
	return init_srcu_struct_fast(ssp);
#endif
}

__rust_helper struct srcu_ctr __percpu *
rust_helper_srcu_fast_read_lock(struct srcu_struct *ssp)
{
	return srcu_read_lock_fast(ssp);
}

__rust_helper void
rust_helper_srcu_fast_read_unlock(struct srcu_struct *ssp,
				  struct srcu_ctr __percpu *ctr)
{
	srcu_read_unlock_fast(ssp, ctr);
}
