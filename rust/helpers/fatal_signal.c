// SPDX-License-Identifier: GPL-2.0
/* A signal that ends a task: an inline function. */

#include <linux/sched/signal.h>

__rust_helper bool rust_helper_fatal_signal_of_current(void)
{
	return fatal_signal_pending(current);
}
