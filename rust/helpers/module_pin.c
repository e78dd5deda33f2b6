// SPDX-License-Identifier: GPL-2.0
/* A function that is a macro in some configurations. */

#include <linux/rcupdate.h>

__rust_helper void rust_helper_rcu_tasks_synchronize(void)
{
	synchronize_rcu_tasks();
}
