// SPDX-License-Identifier: GPL-2.0
/* Checks of whether the caller may wait. */

#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

/*
 * Without a preemption count, spinlocks and some read-side critical sections are not
 * tracked.
 */
__rust_helper bool rust_helper_late_drop_must_not_sleep(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		return !preemptible() || rcu_preempt_depth();
	return preempt_count() || irqs_disabled() || rcu_preempt_depth();
}

/* I/O may be waiting for a task in a NOIO scope. */
__rust_helper bool rust_helper_late_drop_may_wait(void)
{
	return preemptible() && !rcu_preempt_depth() &&
	       !(current->flags & PF_MEMALLOC_NOIO);
}

__rust_helper bool rust_helper_late_drop_must_not_wait(void)
{
	return rust_helper_late_drop_must_not_sleep() ||
	       (current->flags & PF_MEMALLOC_NOIO);
}
