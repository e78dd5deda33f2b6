// SPDX-License-Identifier: GPL-2.0
/* What tells whether a caller may wait. */

#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

/* I/O may wait for a task that says that it starts none to get memory. */
__rust_helper bool rust_helper_late_drop_may_wait(void)
{
	return preemptible() && !rcu_preempt_depth() &&
	       !(current->flags & PF_MEMALLOC_NOIO);
}

/* Without a count, nothing is known of spinlocks, nor of some read sections. */
__rust_helper bool rust_helper_late_drop_must_not_wait(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		return !rust_helper_late_drop_may_wait();
	return preempt_count() || irqs_disabled() || rcu_preempt_depth() ||
	       (current->flags & PF_MEMALLOC_NOIO);
}
