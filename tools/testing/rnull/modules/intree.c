// SPDX-License-Identifier: GPL-2.0
/* Keeps a module that is built outside of the tree from tainting the kernel, which a guest would report. */
#include <linux/module.h>

MODULE_INFO(intree, "Y");
