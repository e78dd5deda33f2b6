// SPDX-License-Identifier: GPL-2.0
/* What drivers of PCI devices ask of a device, or of the machine. */

#include <linux/dma-mapping.h>
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

/* A segment may be as long as the limits of a queue say. */
__rust_helper void
rust_helper_pci_device_set_dma_limits(struct pci_dev *dev,
				      unsigned int min_align_mask)
{
	dma_set_max_seg_size(&dev->dev, UINT_MAX);
	dma_set_min_align_mask(&dev->dev, min_align_mask);
}

__rust_helper void rust_helper_pci_device_lock(struct pci_dev *dev)
{
	device_lock(&dev->dev);
}

__rust_helper bool rust_helper_pci_device_trylock(struct pci_dev *dev)
{
	return device_trylock(&dev->dev);
}

__rust_helper void rust_helper_pci_device_unlock(struct pci_dev *dev)
{
	device_unlock(&dev->dev);
}

/*
 * Unlike pci_clear_master(), this leaves what C has recorded of the device as it is, which
 * may be changed only with the lock of the device.
 */
__rust_helper void rust_helper_pci_device_clear_master(struct pci_dev *dev)
{
	u16 command;

	if (!pci_read_config_word(dev, PCI_COMMAND, &command))
		pci_write_config_word(dev, PCI_COMMAND,
				      command & ~PCI_COMMAND_MASTER);
}
#endif
