// SPDX-License-Identifier: GPL-2.0
/* Interrupt vectors of PCI devices: inline functions without CONFIG_PCI_MSI. */

#include <linux/cpumask.h>
#include <linux/pci.h>

#ifdef CONFIG_PCI
__rust_helper int rust_helper_pci_vectors_alloc(struct pci_dev *dev,
						unsigned int min,
						unsigned int max,
						unsigned int flags,
						struct irq_affinity *spread)
{
	return pci_alloc_irq_vectors_affinity(dev, min, max, flags, spread);
}

__rust_helper void rust_helper_pci_vectors_free(struct pci_dev *dev)
{
	pci_free_irq_vectors(dev);
}

__rust_helper int rust_helper_pci_vectors_irq(struct pci_dev *dev,
					      unsigned int index)
{
	return pci_irq_vector(dev, index);
}

__rust_helper const struct cpumask *
rust_helper_pci_vectors_affinity(struct pci_dev *dev, int index)
{
	return pci_irq_get_affinity(dev, index);
}

/* C makes at most so many masks for a set of vectors. */
__rust_helper unsigned int rust_helper_pci_vectors_cpus(void)
{
	return num_possible_cpus();
}
#endif
