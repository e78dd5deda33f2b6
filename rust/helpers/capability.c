// SPDX-License-Identifier: GPL-2.0
/* The capabilities of the current task: an inline function without CONFIG_MULTIUSER. */

#include <linux/capability.h>

__rust_helper bool rust_helper_capability_is_admin(void)
{
	return capable(CAP_SYS_ADMIN);
}
