// SPDX-License-Identifier: GPL-2.0
/* What drivers of PCI devices ask of a device, or of the machine. */

#include <linux/pci.h>
#include <xen/xen.h>

#ifdef CONFIG_PCI
__rust_helper unsigned long rust_helper_pci_bar_flags(struct pci_dev *dev,
						      unsigned int bar)
{
	return pci_resource_flags(dev, bar);
}

/* The frontend for PCI devices of a PV guest calls drivers without a lock. */
__rust_helper bool rust_helper_pci_errors_are_locked(void)
{
	return !xen_pv_domain();
}
#endif
