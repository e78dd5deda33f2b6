// SPDX-License-Identifier: GPL-2.0
/*
 * Faults on demand for Rust: what the generated bindings have no types for.
 */

#include <linux/fault-inject.h>
#include <linux/slab.h>

#ifdef CONFIG_FAULT_INJECTION_CONFIGFS

/* A fault, the type of its directory, which frees it, and what keeps this code until then. */
struct rust_fault {
	struct fault_config config;
	struct config_item_type type;
	struct configfs_item_operations operations;
	void *pin;
	void (*let_go)(void *pin);
};

__rust_helper void rust_helper_fault_release(struct config_item *item)
{
	struct rust_fault *fault = container_of(item, struct rust_fault, config.group.cg_item);
	void (*let_go)(void *pin) = fault->let_go;
	void *pin = fault->pin;

	kfree(fault);
	(*let_go)(pin);
}

__rust_helper bool
rust_helper_fault_parse(const char *text, unsigned long *interval,
			unsigned long *probability, int *space, int *times)
{
	DECLARE_FAULT_ATTR(attr);

	/* It does not write to the text. */
	if (!setup_fault_attr(&attr, (char *)text))
		return false;
	*interval = attr.interval;
	*probability = attr.probability;
	*space = atomic_read(&attr.space);
	*times = atomic_read(&attr.times);
	return true;
}

/*
 * The caller gets a reference to the group. When the last one is put, all is freed, and then the
 * pin is let go. Without memory there is no group, and the pin stays the caller's.
 */
__rust_helper struct config_group *
rust_helper_fault_new(const char *name, unsigned long interval,
		      unsigned long probability, int space, int times,
		      unsigned long verbose, void *pin,
		      void (*let_go)(void *pin))
{
	DECLARE_FAULT_ATTR(attr);
	struct rust_fault *fault = kzalloc_obj(*fault);
	struct config_item *item;

	if (!fault)
		return NULL;
	attr.interval = interval;
	attr.probability = probability;
	attr.verbose = verbose;
	atomic_set(&attr.space, space);
	atomic_set(&attr.times, times);
	fault->config.attr = attr;
	/* For lockdep, a lock is not to be copied. */
	ratelimit_state_init(&fault->config.attr.ratelimit_state, 0,
			     DEFAULT_RATELIMIT_BURST);

	fault_config_init(&fault->config, name);
	item = &fault->config.group.cg_item;
	/* That there was no memory for the name is only to be seen here. */
	if (!item->ci_name) {
		kfree(fault);
		return NULL;
	}
	fault->type = *item->ci_type;
	fault->type.ct_item_ops = &fault->operations;
	fault->operations.release = rust_helper_fault_release;
	item->ci_type = &fault->type;
	fault->pin = pin;
	fault->let_go = let_go;
	return &fault->config.group;
}

__rust_helper bool rust_helper_fault_should_fail(struct config_group *group)
{
	return should_fail(&container_of(group, struct fault_config, group)->attr, 1);
}

#endif /* CONFIG_FAULT_INJECTION_CONFIGFS */
