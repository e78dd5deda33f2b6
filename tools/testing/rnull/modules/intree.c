// SPDX-License-Identifier: GPL-2.0
/* Keeps a module built outside of the tree from tainting the kernel, which a guest reports. */
#include <linux/module.h>

MODULE_INFO(intree, "Y");
