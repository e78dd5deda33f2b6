// SPDX-License-Identifier: GPL-2.0
/* Helpers for devices of a class, in the tree of devices. */

#include <linux/device.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/sysfs.h>

__rust_helper void
rust_helper_device_attribute_init(struct device_attribute *attribute,
				  const char *name, umode_t mode,
				  typeof_member(struct device_attribute, show) show,
				  typeof_member(struct device_attribute, store) store)
{
	sysfs_attr_init(&attribute->attr);
	attribute->attr.name = name;
	attribute->attr.mode = mode;
	attribute->show = show;
	attribute->store = store;
}

__rust_helper void
rust_helper_attribute_group_init(struct attribute_group *group,
				 struct attribute **attributes)
{
	group->attrs = attributes;
}

__rust_helper void rust_helper_class_minors_init(struct ida *minors)
{
	ida_init(minors);
}

__rust_helper int rust_helper_device_numa_node(struct device *dev)
{
	return dev_to_node(dev);
}

__rust_helper struct kernfs_node *
rust_helper_device_directory_get(struct device *dev)
{
	return sysfs_get(dev->kobj.sd);
}

__rust_helper void
rust_helper_device_directory_put(struct kernfs_node *directory)
{
	sysfs_put(directory);
}

__rust_helper struct cdev *rust_helper_inode_cdev(struct inode *inode)
{
	return inode->i_cdev;
}

#ifndef CONFIG_SYSFS
__rust_helper int rust_helper_sysfs_create_link(struct kobject *kobj, struct kobject *target,
						const char *name)
{
	return sysfs_create_link(kobj, target, name);
}
#endif
