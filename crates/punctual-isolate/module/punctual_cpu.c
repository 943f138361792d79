// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /dev/punctual-cpu: starts an image on a CPU that is offline in Linux, on
 * 64-bit ARM with PSCI and a GIC, and ends it.
 *
 * A process that may open the device can run any code at the kernel's level, so it
 * belongs to root, or to a group as trusted as root. It has one user at a time.
 *
 * write() copies the image to its offset in the block, mmap() maps the part that both sides
 * share, close() ends the image; punctual_cpu.h defines the rest. The CPU goes offline and
 * online by its file in /sys; going online fails while an image runs there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/arm-smccc.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/irqdomain.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/reboot.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <uapi/linux/psci.h>
#include <asm/sysreg.h>
#include "punctual_cpu.h"

#define BEAT_MS 50
#define BELL 8
/* The longest wait for the end of an image. */
#define MAX_STOP_MS 60000U

static ulong phys;
module_param(phys, ulong, 0444);
MODULE_PARM_DESC(phys, "address of 2 MB reserved for the image; 0: allocate them");
static uint spi = 200;
module_param(spi, uint, 0444);
MODULE_PARM_DESC(spi, "an unused shared peripheral interrupt, for the image to interrupt Linux");

static DEFINE_MUTEX(lock);
static struct page *pages;
static struct punctual_cpu_shared *head;
static u64 base;
static void __iomem *distributor;
static u64 distributor_at, interface_at;
static struct device_node *controller;
static u32 gic, mapped_door;
static bool by_smc, is_open;
static enum cpuhp_state hotplug;
static struct eventfd_ctx *doorbell;
/* The CPU on which an image was started and whose end was not observed yet; -1: none. */
static int taken = -1;
static u64 taken_id;
/* The grace of that image. The copy in shared memory belongs to user space, which may overwrite it at any time. */
static u32 grace_ms;
/* The image has run, and its CPU is off: Linux may use it again. Before that, firmware may report off for a CPU that it is about to start. */
static bool was_off;

static long psci(u32 function, u64 a, u64 b, u64 c)
{
	struct arm_smccc_res res;

	/* arm_smccc_1_1_invoke() finds no conduit if the firmware has version 1.0 of the calling convention. */
	if (by_smc)
		arm_smccc_smc(function, a, b, c, 0, 0, 0, 0, &res);
	else
		arm_smccc_hvc(function, a, b, c, 0, 0, 0, 0, &res);
	return (long)res.a0;
}

static bool is_off(void)
{
	if (!READ_ONCE(was_off) && READ_ONCE(head->state) &&
	    psci(PSCI_0_2_FN64_AFFINITY_INFO, taken_id, 0, 0) == PSCI_0_2_AFFINITY_LEVEL_OFF)
		WRITE_ONCE(was_off, true);
	return READ_ONCE(was_off);
}

static int mpidr(unsigned int cpu, u64 *id)
{
	struct device_node *node = of_get_cpu_node(cpu, NULL);
	int size = 0;
	const __be32 *reg = node ? of_get_property(node, "reg", &size) : NULL;

	if (reg)
		*id = of_read_number(reg, size / 4);
	of_node_put(node);
	return reg ? 0 : -ENODEV;
}

/* Cleans and invalidates the block, so that a CPU with MMU and caches disabled reads it. */
static void clean(void)
{
	ulong line = 4UL << (read_sysreg(ctr_el0) >> 16 & 15), at;

	for (at = (ulong)head; at < (ulong)head + PUNCTUAL_CPU_BLOCK; at += line)
		asm volatile("dc civac, %0" :: "r"(at) : "memory");
	asm volatile("dsb sy" ::: "memory");
}

/* Finds the address of the interrupt controller's registers for a CPU. */
static int place(u64 id, u64 *at)
{
	struct resource region;
	int i;

	*at = interface_at;
	if (gic == 2)
		return 0;
	for (i = 1; !of_address_to_resource(controller, i, &region); i++) {
		u64 frame, type = 0;

		for (frame = region.start; frame + 0x20000 <= region.end + 1 && !(type & BIT(4));
		     frame += type & BIT(1) ? 0x40000 : 0x20000) {
			void __iomem *regs = ioremap(frame, 0x10000);

			if (!regs)
				return -ENOMEM;
			type = readq(regs + 8);
			iounmap(regs);
			if (type >> 32 == ((id & 0xffffff) | (id >> 32 & 0xff) << 24)) {
				*at = frame;
				return 0;
			}
		}
	}
	return -ENODEV;
}

static void beat(struct work_struct *work);
static DECLARE_DELAYED_WORK(beating, beat);

static void beat(struct work_struct *work)
{
	WRITE_ONCE(head->linux_beat, READ_ONCE(head->linux_beat) + 1);
	schedule_delayed_work(&beating, msecs_to_jiffies(BEAT_MS));
}

static void gone(void)
{
	cancel_delayed_work_sync(&beating);
	taken = -1;
	module_put(THIS_MODULE);
}

static int stop(u32 patience_ms)
{
	ktime_t end = ktime_add_ms(ktime_get(), patience_ms);

	if (taken < 0)
		return -ESRCH;
	/* Sends no interrupt: if it stayed pending, Linux would get it when the CPU returns, and never complete it. */
	smp_store_release(&head->stop, 1);
	while (!is_off()) {
		if (ktime_after(ktime_get(), end)) {
			pr_err("the image on CPU %d does not end; the CPU is unusable until the next boot\n", taken);
			return -ETIMEDOUT;
		}
		usleep_range(500, 1000);
	}
	gone();
	return 0;
}

static void end(void)
{
	mutex_lock(&lock);
	stop(min_t(u64, 2ULL * grace_ms + 1000, MAX_STOP_MS));
	mutex_unlock(&lock);
}

static int start(struct punctual_cpu_start *what)
{
	const struct punctual_cpu_image *image = (void *)head + PUNCTUAL_CPU_SHARED;
	struct eventfd_ctx *eventfd = NULL;
	long error;
	u64 id;

	if (taken >= 0)
		return -EBUSY;
	if (what->cpu >= nr_cpu_ids || !cpu_possible(what->cpu) || mpidr(what->cpu, &id))
		return -ENODEV;
	if (image->magic != PUNCTUAL_CPU_MAGIC || image->entry < PUNCTUAL_CPU_SHARED ||
	    image->entry >= PUNCTUAL_CPU_BLOCK || image->tables < PUNCTUAL_CPU_SHARED ||
	    image->tables >= PUNCTUAL_CPU_BLOCK || image->tables & 0xfff)
		return -ENOEXEC;
	if (image->version != PUNCTUAL_CPU_VERSION)
		return -EPROTO;
	if (place(id, &what->interface))
		return -ENODEV;
	if (what->eventfd >= 0) {
		eventfd = eventfd_ctx_fdget(what->eventfd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
	}
	/* The CPU cannot go online between this and the start. */
	cpus_read_lock();
	if (cpu_online(what->cpu)) {
		error = -EADDRINUSE;
		goto unlock;
	}
	memset(head, 0, PUNCTUAL_CPU_TEXT);
	head->base = base;
	head->distributor = distributor_at;
	head->interface = what->interface;
	head->version = PUNCTUAL_CPU_VERSION;
	head->cpu = what->cpu;
	head->gic = gic;
	head->smc = by_smc;
	head->doorbell = spi + 32;
	head->bell = BELL;
	head->patience_ms = what->patience_ms;
	head->grace_ms = what->grace_ms;
	grace_ms = what->grace_ms;
	clean();
	taken_id = id;
	error = psci(PSCI_0_2_FN64_CPU_ON, id, base + image->entry, base);
	if (error) {
		pr_err("PSCI CPU_ON of CPU %u: %ld\n", what->cpu, error);
		error = -EIO;
		goto unlock;
	}
	was_off = false;
	taken = what->cpu;
	__module_get(THIS_MODULE);
	eventfd = xchg(&doorbell, eventfd);
	schedule_delayed_work(&beating, 0);
unlock:
	cpus_read_unlock();
	/* An interrupt handler may still use the context of the previous image. */
	if (eventfd) {
		synchronize_irq(mapped_door);
		eventfd_ctx_put(eventfd);
	}
	return error;
}

static int ring(void)
{
	int error = 0;

	if (taken < 0)
		return -ESRCH;
	/* An ending image sets its state, waits until `ringing` is 0, and clears pending interrupts: at least one side sees the other's write. */
	WRITE_ONCE(head->ringing, 1);
	smp_mb();
	if (READ_ONCE(head->state) != PUNCTUAL_CPU_RUNS || READ_ONCE(head->stop)) {
		error = -ESRCH;
	} else if (gic == 2) {
		writel(1U << (16 + (taken_id & 7)) | BELL, distributor + 0xf00);
	} else {
		u64 to = (taken_id >> 32 & 0xff) << 48 | (taken_id >> 16 & 0xff) << 32 | (taken_id >> 8 & 0xff) << 16;

		write_sysreg_s(to | (u64)BELL << 24 | (taken_id >> 4 & 15) << 44 | 1U << (taken_id & 15),
			       SYS_ICC_SGI1R_EL1);
		isb();
	}
	mb();
	WRITE_ONCE(head->ringing, 0);
	return error;
}

static irqreturn_t rang(int irq, void *data)
{
	/* One load: release() may clear the pointer at any time, and frees the context only after this handler. */
	struct eventfd_ctx *eventfd = READ_ONCE(doorbell);

	if (eventfd) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
		eventfd_signal(eventfd);
#else
		eventfd_signal(eventfd, 1);
#endif
	}
	return IRQ_HANDLED;
}

static long punctual_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct punctual_cpu_about about = { PUNCTUAL_CPU_VERSION, gic, base, distributor_at };
	struct punctual_cpu_start what;
	long result = -ENOTTY;
	u32 patience;
	u64 id;

	mutex_lock(&lock);
	switch (command) {
	case PUNCTUAL_CPU_ABOUT:
		result = copy_to_user(user, &about, sizeof(about)) ? -EFAULT : 0;
		break;
	case PUNCTUAL_CPU_PLACE:
	case PUNCTUAL_CPU_START:
		if (copy_from_user(&what, user, sizeof(what)))
			result = -EFAULT;
		else if (command == PUNCTUAL_CPU_START)
			result = start(&what);
		else if (what.cpu >= nr_cpu_ids || !cpu_possible(what.cpu) || mpidr(what.cpu, &id))
			result = -ENODEV;
		else
			result = place(id, &what.interface);
		if (!result && copy_to_user(user, &what, sizeof(what)))
			result = -EFAULT;
		break;
	case PUNCTUAL_CPU_STOP:
		result = get_user(patience, (u32 __user *)user) ? -EFAULT : stop(min(patience, MAX_STOP_MS));
		break;
	case PUNCTUAL_CPU_RING:
		result = ring();
		break;
	case PUNCTUAL_CPU_IS_ON:
		if (taken >= 0 && is_off())
			gone();
		result = taken >= 0;
		break;
	}
	mutex_unlock(&lock);
	return result;
}

static ssize_t punctual_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	ssize_t written;

	mutex_lock(&lock);
	written = taken < 0 ? -EINVAL : -EBUSY;
	if (taken < 0 && *at >= PUNCTUAL_CPU_SHARED)
		written = simple_write_to_buffer(head, PUNCTUAL_CPU_BLOCK, at, from, count);
	mutex_unlock(&lock);
	return written;
}

static int punctual_mmap(struct file *file, struct vm_area_struct *area)
{
	ulong size = area->vm_end - area->vm_start;

	if (area->vm_pgoff || size > PUNCTUAL_CPU_SHARED || !(area->vm_flags & VM_SHARED))
		return -EINVAL;
	/* As the image maps it: inner shareable, write-back. */
	return remap_pfn_range(area, area->vm_start, base >> PAGE_SHIFT, size, area->vm_page_prot);
}

static int punctual_open(struct inode *inode, struct file *file)
{
	bool is_busy;

	mutex_lock(&lock);
	is_busy = is_open || taken >= 0;
	/* Erases an earlier image. */
	if (!is_busy)
		memset(head, 0, PUNCTUAL_CPU_BLOCK);
	is_open |= !is_busy;
	mutex_unlock(&lock);
	return is_busy ? -EBUSY : 0;
}

static int punctual_release(struct inode *inode, struct file *file)
{
	struct eventfd_ctx *was;

	end();
	was = xchg(&doorbell, NULL);
	if (was) {
		synchronize_irq(mapped_door);
		eventfd_ctx_put(was);
	}
	WRITE_ONCE(is_open, false);
	return 0;
}

static int coming_online(unsigned int cpu)
{
	/* Without the lock, since its holder may wait for hotplug. */
	return READ_ONCE(taken) == (int)cpu && !is_off() ? -EBUSY : 0;
}

static int rebooting(struct notifier_block *block, unsigned long event, void *data)
{
	end();
	return NOTIFY_DONE;
}

static struct notifier_block before_reboot = { .notifier_call = rebooting };

static const struct file_operations operations = {
	.owner = THIS_MODULE, .open = punctual_open, .release = punctual_release, .unlocked_ioctl = punctual_ioctl,
	.write = punctual_write, .mmap = punctual_mmap, .llseek = default_llseek,
};
static struct miscdevice device = { MISC_DYNAMIC_MINOR, "punctual-cpu", &operations, .mode = 0600 };

static const struct of_device_id gics[] = {
	{ .compatible = "arm,gic-400", .data = (void *)2 }, { .compatible = "arm,cortex-a15-gic", .data = (void *)2 },
	{ .compatible = "arm,cortex-a7-gic", .data = (void *)2 }, { .compatible = "arm,gic-v3", .data = (void *)3 }, { }
};

static int __init look(void)
{
	struct device_node *firmware = of_find_node_by_name(NULL, "psci");
	const struct of_device_id *match;
	struct resource region;
	const char *method = NULL;
	int error;

	controller = of_find_matching_node_and_match(NULL, gics, &match);
	if (!controller || of_address_to_resource(controller, 0, &region)) {
		pr_err("the device tree has no GICv2 or GICv3\n");
		return -ENODEV;
	}
	gic = (ulong)match->data;
	distributor_at = region.start;
	if (gic == 2 && of_address_to_resource(controller, 1, &region))
		return -ENODEV;
	interface_at = region.start;
	error = firmware ? of_property_read_string(firmware, "method", &method) : -ENODEV;
	by_smc = method && !strcmp(method, "smc");
	of_node_put(firmware);
	if (error)
		pr_err("the device tree has no PSCI, so no CPU can be started\n");
	return error;
}

static int __init memory(void)
{
	if (phys) {
		if (phys % PUNCTUAL_CPU_BLOCK || pfn_is_map_memory(PHYS_PFN(phys))) {
			pr_err("phys=%#lx: not a multiple of 2 MB, or memory that Linux uses\n", phys);
			return -EINVAL;
		}
		base = phys;
		head = memremap(phys, PUNCTUAL_CPU_BLOCK, MEMREMAP_WB);
	} else {
		pages = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, get_order(PUNCTUAL_CPU_BLOCK));
		base = pages ? page_to_phys(pages) : 0;
		head = pages ? page_address(pages) : NULL;
	}
	if (!head)
		pr_err("no 2 MB of contiguous memory; load the module early, or reserve memory with mem= and phys=\n");
	return head ? 0 : -ENOMEM;
}

static void give_back(void)
{
	if (hotplug > 0)
		cpuhp_remove_state_nocalls(hotplug);
	if (mapped_door) {
		free_irq(mapped_door, &device);
		irq_dispose_mapping(mapped_door);
	}
	if (distributor)
		iounmap(distributor);
	if (pages)
		__free_pages(pages, get_order(PUNCTUAL_CPU_BLOCK));
	else if (head)
		memunmap(head);
	of_node_put(controller);
}

static int __init punctual_init(void)
{
	struct irq_fwspec wanted;
	int error = look() ?: memory();

	if (error)
		goto undo;
	error = -ENOMEM;
	distributor = ioremap(distributor_at, 0x1000);
	if (!distributor)
		goto undo;
	wanted = (struct irq_fwspec) { of_node_to_fwnode(controller), 3, { 0, spi, IRQ_TYPE_EDGE_RISING } };
	mapped_door = irq_create_fwspec_mapping(&wanted);
	error = mapped_door ? request_irq(mapped_door, rang, IRQF_NO_THREAD, "punctual-cpu", &device) : -ENXIO;
	if (error) {
		pr_err("spi=%u is not available: %d\n", spi, error);
		mapped_door = 0;
		goto undo;
	}
	error = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "punctual_cpu:online", coming_online, NULL);
	if (error < 0)
		goto undo;
	hotplug = error;
	error = misc_register(&device);
	if (error)
		goto undo;
	register_reboot_notifier(&before_reboot);
	pr_info("version %d, GICv%u, PSCI %#lx by %s, 2 MB at %#llx\n", PUNCTUAL_CPU_VERSION, gic,
		psci(PSCI_0_2_FN_PSCI_VERSION, 0, 0, 0), by_smc ? "SMC" : "HVC", base);
	return 0;
undo:
	give_back();
	return error;
}

static void __exit punctual_exit(void)
{
	unregister_reboot_notifier(&before_reboot);
	misc_deregister(&device);
	give_back();
}

module_init(punctual_init);
module_exit(punctual_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("2");
MODULE_DESCRIPTION("Runs an image on a CPU without Linux");
