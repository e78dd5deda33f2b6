// SPDX-License-Identifier: GPL-2.0
/* What drivers of PCI devices ask of a device. */

#include <linux/pci.h>

#ifdef CONFIG_PCI
__rust_helper unsigned long rust_helper_pci_bar_flags(struct pci_dev *dev,
						      unsigned int bar)
{
	return pci_resource_flags(dev, bar);
}
#endif
