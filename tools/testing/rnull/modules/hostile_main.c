// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI bus in software with one device, an NVMe controller, which is played by a kernel thread: its
 * registers are memory that was kept free on the kernel's command line (memmap=64K$ADDRESS), at the
 * address that the parameter `at` names, so drivers map and use them as those of any device.
 *
 * The device accesses memory at the addresses that it is given. It is checked that this is memory, and
 * that the driver lets the device access it; KASAN checks that it is not free.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "hostile.h"

#define DOMAIN	0x10000
#define EXP_AT	0x40	/* The capability of a device that can be reset. */

static unsigned long at;
module_param(at, ulong, 0400);
MODULE_PARM_DESC(at, "physical address of the registers");

unsigned long bar_size = 64 << 10;
module_param_named(size, bar_size, ulong, 0400);
MODULE_PARM_DESC(size, "size of the registers in bytes, a power of two");

static uint id = 0x1b36fff0;
module_param(id, uint, 0400);
MODULE_PARM_DESC(id, "device of PCI, and above it the vendor");

/* What a driver did wrong. */
static unsigned long faults;
module_param(faults, ulong, 0400);

void __iomem *bar;
static u8 config[256];
static bool gone, is_reset_requested;
/* How often the device was forbidden to access memory; for which of these times it wants to. */
static u32 forbidden, wanted;
static bool is_wanted;
/* Protects these. While it is held the device may access memory. */
static DEFINE_RAW_SPINLOCK(lock);

static int irq;
static struct irq_work interrupt;
static struct task_struct *thread;
static struct pci_host_bridge *bridge;
static struct pci_sysdata sysdata = { .domain = DOMAIN, .node = NUMA_NO_NODE };
/* Not among those of the machine, which has this as reserved memory. */
static struct resource window = { .name = "hostile", .flags = IORESOURCE_MEM };
static struct resource numbers = { .name = "hostile", .flags = IORESOURCE_BUS };

static u16 command(void)
{
	return config[PCI_COMMAND] | config[PCI_COMMAND + 1] << 8;
}

static bool is_line_enabled(void)
{
	guard(raw_spinlock_irqsave)(&lock);
	return !gone && !(command() & PCI_COMMAND_INTX_DISABLE);
}

void fault(const char *what, u64 value)
{
	faults++;
	pr_err_ratelimited("hostile: fault: %s: %#llx\n", what, value);
}

/* Interrupts. */

static void handle_interrupt(struct irq_work *work)
{
	generic_handle_irq(irq);
}

void raise_interrupt(void)
{
	if (is_line_enabled())
		irq_work_queue(&interrupt);
}

/* Memory. */

static int access_page(u64 address, void *buffer, size_t len, bool to_memory)
{
	unsigned long pfn = PHYS_PFN(address);

	guard(raw_spinlock_irqsave)(&lock);
	if (gone || !(command() & PCI_COMMAND_MASTER) || (is_wanted && wanted != forbidden))
		return -EPERM;
	/* The kernel may write zeros from its page of them. */
	if (!pfn_valid(pfn) ||
	    (PageReserved(pfn_to_page(pfn)) && (to_memory || !is_zero_pfn(pfn)))) {
		fault("not memory", address);
		return -EFAULT;
	}
	if (to_memory)
		memcpy(phys_to_virt(address), buffer, len);
	else
		memcpy(buffer, phys_to_virt(address), len);
	return 0;
}

int access_memory(u64 address, void *buffer, size_t len, bool to_memory)
{
	while (len) {
		size_t part = min_t(size_t, len, PAGE_BYTES - address % PAGE_BYTES);
		int result = access_page(address, buffer, part, to_memory);

		if (result)
			return result;
		address += part;
		buffer += part;
		len -= part;
	}
	return 0;
}

/* For how long the device may access memory: it is another number when it was forbidden meanwhile. */
u32 mastery(void)
{
	guard(raw_spinlock_irqsave)(&lock);
	return forbidden;
}

/* Lets what follows access memory only as long as that is allowed; 0 ends this. */
void only_while(u32 mastery)
{
	guard(raw_spinlock_irqsave)(&lock);
	wanted = mastery;
	is_wanted = mastery;
}

/* The configuration. */

static void put_config(unsigned int to, u32 value, unsigned int size)
{
	while (size--) {
		config[to++] = value;
		value >>= 8;
	}
}

static void set_command(u16 value)
{
	if (!(value & PCI_COMMAND_MASTER))
		forbidden++;
	put_config(PCI_COMMAND, value, 2);
}

static void init_config(void)
{
	memset(config, 0, sizeof(config));
	put_config(PCI_VENDOR_ID, id >> 16, 2);
	put_config(PCI_DEVICE_ID, id, 2);
	put_config(PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
	put_config(PCI_CLASS_REVISION, PCI_CLASS_STORAGE_EXPRESS << 8 | 1, 4);
	put_config(PCI_BASE_ADDRESS_0, at | PCI_BASE_ADDRESS_MEM_TYPE_64, 4);
	put_config(PCI_CAPABILITY_LIST, EXP_AT, 1);
	put_config(EXP_AT, PCI_CAP_ID_EXP, 1);
	/* There is no link. */
	put_config(EXP_AT + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_RC_END << 4, 2);
	put_config(EXP_AT + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR, 4);
}

/* The device forgets all but its address. */
static void reset_config(void)
{
	set_command(0);
	put_config(EXP_AT + PCI_EXP_DEVCTL, 0, 2);
	put_config(PCI_CACHE_LINE_SIZE, 0, 1);
	put_config(PCI_INTERRUPT_LINE, 0, 1);
	is_reset_requested = true;
}

static int read_config(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	int i;

	*value = ~0;
	if (devfn || where < 0 || where + size > sizeof(config))
		return PCIBIOS_DEVICE_NOT_FOUND;
	guard(raw_spinlock_irqsave)(&lock);
	if (gone)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = 0;
	for (i = size - 1; i >= 0; i--)
		*value = *value << 8 | config[where + i];
	return PCIBIOS_SUCCESSFUL;
}

static int write_config(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	if (devfn || where < 0 || where + size > sizeof(config))
		return PCIBIOS_DEVICE_NOT_FOUND;
	guard(raw_spinlock_irqsave)(&lock);
	if (gone)
		return PCIBIOS_DEVICE_NOT_FOUND;
	switch (where) {
	case PCI_COMMAND:
		set_command(value);
		break;
	case PCI_BASE_ADDRESS_0:
		/* The address is fixed, but the size is asked for. */
		value = value == ~0U ? ~(bar_size - 1) : at;
		put_config(where, value | PCI_BASE_ADDRESS_MEM_TYPE_64, 4);
		break;
	case PCI_BASE_ADDRESS_1:
		put_config(where, value == ~0U ? ~0 : 0, 4);
		break;
	case PCI_CACHE_LINE_SIZE:
	case PCI_INTERRUPT_LINE:
		put_config(where, value, size);
		break;
	case EXP_AT + PCI_EXP_DEVCTL:
		put_config(where, value & ~PCI_EXP_DEVCTL_BCR_FLR, 2);
		if (value & PCI_EXP_DEVCTL_BCR_FLR)
			reset_config();
		break;
	}
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops operations = { .read = read_config, .write = write_config };

bool take_reset_request(void)
{
	guard(raw_spinlock_irqsave)(&lock);
	if (!is_reset_requested)
		return false;
	is_reset_requested = false;
	return true;
}

/* A device that comes back may not access memory. */
void set_gone(bool is_gone)
{
	guard(raw_spinlock_irqsave)(&lock);
	if (gone && !is_gone)
		set_command(0);
	gone = is_gone;
}

/* The module. */

static int play(void *data)
{
	while (!kthread_should_stop()) {
		if (poll_controller())
			cond_resched();
		else
			usleep_range(20, 60);
	}
	return 0;
}

static int make_bus(void)
{
	struct pci_dev *dev;
	int result;

	bridge = pci_alloc_host_bridge(0);
	if (!bridge)
		return -ENOMEM;
	bridge->sysdata = &sysdata;
	bridge->ops = &operations;
	bridge->busnr = 0;
	pci_add_resource(&bridge->windows, &window);
	pci_add_resource(&bridge->windows, &numbers);
	pci_lock_rescan_remove();
	result = pci_scan_root_bus_bridge(bridge);
	if (result)
		goto fail;
	pci_bus_claim_resources(bridge->bus);
	/* As if firmware had told of it. */
	list_for_each_entry(dev, &bridge->bus->devices, bus_list)
		dev->irq = irq;
	pci_bus_add_devices(bridge->bus);
	pci_unlock_rescan_remove();
	return 0;

fail:
	pci_unlock_rescan_remove();
	pci_free_host_bridge(bridge);
	return result;
}

static int __init hostile_init(void)
{
	int result;

	if (!at || !is_power_of_2(bar_size) || bar_size < PAGE_BYTES || at % bar_size)
		return -EINVAL;
	window.start = at;
	window.end = at + bar_size - 1;
	init_config();
	init_irq_work(&interrupt, handle_interrupt);
	result = make_disks();
	if (result)
		goto disks;
	bar = ioremap(at, bar_size);
	if (!bar) {
		result = -ENOMEM;
		goto disks;
	}
	memset_io(bar, 0, bar_size);
	irq = irq_alloc_desc(NUMA_NO_NODE);
	if (irq < 0) {
		result = irq;
		goto unmap;
	}
	irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_simple_irq);
	irq_modify_status(irq, IRQ_NOREQUEST | IRQ_NOPROBE | IRQ_NOAUTOEN, 0);
	thread = kthread_run(play, NULL, "hostile");
	if (IS_ERR(thread)) {
		result = PTR_ERR(thread);
		goto free_irq;
	}
	result = make_bus();
	if (!result)
		return 0;
	kthread_stop(thread);
free_irq:
	irq_work_sync(&interrupt);
	irq_free_desc(irq);
unmap:
	iounmap(bar);
disks:
	free_disks();
	return result;
}

static void __exit hostile_exit(void)
{
	set_gone(false);
	pci_lock_rescan_remove();
	pci_stop_root_bus(bridge->bus);
	pci_remove_root_bus(bridge->bus);
	pci_unlock_rescan_remove();
	pci_free_host_bridge(bridge);
	kthread_stop(thread);
	irq_work_sync(&interrupt);
	irq_free_desc(irq);
	iounmap(bar);
	free_disks();
}

module_init(hostile_init);
module_exit(hostile_exit);
MODULE_DESCRIPTION("An NVMe controller that lies");
MODULE_LICENSE("GPL");
