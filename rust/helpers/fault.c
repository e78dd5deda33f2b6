// SPDX-License-Identifier: GPL-2.0
/* Fault injection for Rust: the generated bindings lack its types. */

#include <linux/fault-inject.h>
#include <linux/slab.h>

#ifdef CONFIG_FAULT_INJECTION_CONFIGFS

/* A fault, the item type that frees it, and the pin that keeps its code in memory until then. */
struct rust_fault {
	struct fault_config config;
	struct config_item_type type;
	struct configfs_item_operations operations;
	void *pin;
	void (*drop_pin)(void *pin);
};

__rust_helper void rust_helper_fault_release(struct config_item *item)
{
	struct rust_fault *fault = container_of(item, struct rust_fault, config.group.cg_item);
	void (*drop_pin)(void *pin) = fault->drop_pin;
	void *pin = fault->pin;

	kfree(fault);
	(*drop_pin)(pin);
}

__rust_helper bool
rust_helper_fault_parse(const char *text, unsigned long *interval,
			unsigned long *probability, int *space, int *times)
{
	DECLARE_FAULT_ATTR(attr);

	/* setup_fault_attr() does not write to the text. */
	if (!setup_fault_attr(&attr, (char *)text))
		return false;
	*interval = attr.interval;
	*probability = attr.probability;
	*space = atomic_read(&attr.space);
	*times = atomic_read(&attr.times);
	return true;
}

/*
 * Returns a group with a reference. When the last reference is put, the fault is freed, and then
 * the pin is dropped. Returns NULL if out of memory; the pin stays the caller's then.
 */
__rust_helper struct config_group *
rust_helper_fault_new(const char *name, unsigned long interval,
		      unsigned long probability, int space, int times,
		      unsigned long verbose, void *pin,
		      void (*drop_pin)(void *pin))
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
	/* For lockdep, the lock must be initialised again after it was copied. */
	ratelimit_state_init(&fault->config.attr.ratelimit_state, 0,
			     DEFAULT_RATELIMIT_BURST);

	fault_config_init(&fault->config, name);
	item = &fault->config.group.cg_item;
	/* Only here is it visible that the allocation of the name has failed. */
	if (!item->ci_name) {
		kfree(fault);
		return NULL;
	}
	fault->type = *item->ci_type;
	fault->type.ct_item_ops = &fault->operations;
	fault->operations.release = rust_helper_fault_release;
	item->ci_type = &fault->type;
	fault->pin = pin;
	fault->drop_pin = drop_pin;
	return &fault->config.group;
}

__rust_helper bool rust_helper_fault_should_fail(struct config_group *group)
{
	return should_fail(&container_of(group, struct fault_config, group)->attr, 1);
}

#endif /* CONFIG_FAULT_INJECTION_CONFIGFS */
