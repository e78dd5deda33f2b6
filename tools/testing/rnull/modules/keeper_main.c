// SPDX-License-Identifier: GPL-2.0
/*
 * A directory in configfs that can be linked to any other one.
 *
 * It holds a reference to the last target until something is written to its attribute
 * `put`.
 */
#include <linux/configfs.h>
#include <linux/module.h>

static struct config_item *kept;

static ssize_t keeper_put_store(struct config_item *item, const char *page,
				size_t count)
{
	config_item_put(xchg(&kept, NULL));
	return count;
}

CONFIGFS_ATTR_WO(keeper_, put);

static struct configfs_attribute *keeper_attributes[] = {
	&keeper_attr_put,
	NULL,
};

static int keeper_allow_link(struct config_item *item, struct config_item *target)
{
	config_item_put(xchg(&kept, config_item_get(target)));
	return 0;
}

static struct configfs_item_operations keeper_operations = {
	.allow_link = keeper_allow_link,
};

static const struct config_item_type keeper_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &keeper_operations,
	.ct_attrs = keeper_attributes,
};

static struct configfs_subsystem keeper = {
	.su_group.cg_item = {
		.ci_namebuf = "keeper",
		.ci_type = &keeper_type,
	},
};

static int __init keeper_init(void)
{
	config_group_init(&keeper.su_group);
	mutex_init(&keeper.su_mutex);
	return configfs_register_subsystem(&keeper);
}

static void __exit keeper_exit(void)
{
	configfs_unregister_subsystem(&keeper);
	config_item_put(kept);
}

module_init(keeper_init);
module_exit(keeper_exit);
MODULE_DESCRIPTION("References to foreign configfs directories");
MODULE_LICENSE("GPL");
