// SPDX-License-Identifier: GPL-2.0
/* What keeps a module from being freed. */

#include <linux/module.h>

/* A module is freed after the last reference to its directory in sysfs is gone. */
#if defined(CONFIG_MODULES) && defined(CONFIG_SYSFS)
#define MODULE_HAS_KOBJECT 1
#else
#define MODULE_HAS_KOBJECT 0
#endif

/*
 * Fails while there is nothing to hold a module by: without sysfs, or while its
 * parameters are parsed.
 */
__rust_helper bool rust_helper_module_pin(struct module *owner)
{
#if MODULE_HAS_KOBJECT
	if (owner) {
		if (!owner->mkobj.kobj.state_initialized)
			return false;
		kobject_get(&owner->mkobj.kobj);
	}
	return true;
#else
	return !owner;
#endif
}

__rust_helper void rust_helper_module_unpin(struct module *owner)
{
#if MODULE_HAS_KOBJECT
	if (owner)
		kobject_put(&owner->mkobj.kobj);
#endif
}

/*
 * Whether others than its loader have references to a module that is being loaded.
 * If that fails, it is freed without regard to them.
 */
__rust_helper bool rust_helper_module_is_used_early(struct module *owner)
{
#ifdef CONFIG_MODULE_UNLOAD
	return owner && READ_ONCE(owner->state) == MODULE_STATE_COMING &&
	       module_refcount(owner) > 1;
#else
	return false;
#endif
}

/* The module that this is part of, or NULL if it is built in. */
__rust_helper struct module *rust_helper_module_of_helpers(void)
{
	return THIS_MODULE;
}
