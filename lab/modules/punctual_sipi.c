// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Starts an x86-64 CPU that is offline in Linux, by INIT and a startup IPI, at code
 * that counts in memory. A prototype for docs/book/src/guides/amp.md: it handles no
 * machine checks, and kexec and microcode updates ignore it.
 *
 *	echo 0 >/sys/devices/system/cpu/cpu1/online; insmod punctual_sipi.ko cpu=1
 *	cat /sys/module/punctual_sipi/parameters/count
 *	echo 1 >/sys/devices/system/cpu/cpu1/online
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/module.h>
#include <asm/msr.h>
#include <asm/smp.h>

/* In the first megabyte, which Linux leaves to the firmware, except for its own CPU startup code at the end. */
#define CODE 0x8000
#define COUNT 0x100

static uint cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "the CPU, which is offline");

static void *page;

static int get_count(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%u\n", READ_ONCE(*(u32 *)(page + COUNT)));
}
static const struct kernel_param_ops count_ops = { .get = get_count };
module_param_cb(count, &count_ops, NULL, 0444);
MODULE_PARM_DESC(count, "how often its loop has run");

/* In real mode: cli; mov ax, cs; mov ds, ax; 1: inc dword [COUNT]; jmp 1b */
static const u8 code[] = { 0xfa, 0x8c, 0xc8, 0x8e, 0xd8, 0x66, 0xff, 0x06, 0x00, 0x01, 0xeb, 0xf9 };

static int interrupt(u32 to, u32 what)
{
	u64 base;

	rdmsrl(MSR_IA32_APICBASE, base);
	if (base & BIT(10)) {
		wrmsrl(0x830, (u64)to << 32 | what);
	} else {
		void __iomem *apic = ioremap(base & GENMASK_ULL(35, 12), 0x1000);

		if (!apic)
			return -ENOMEM;
		writel(to << 24, apic + 0x310);
		writel(what, apic + 0x300);
		while (readl(apic + 0x300) & BIT(12))
			cpu_relax();
		iounmap(apic);
	}
	return 0;
}

static int __init sipi_init(void)
{
	int error = -EBUSY;
	u32 id;

	if (cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -ENODEV;
	page = phys_to_virt(CODE);
	cpus_read_lock();
	if (cpu_online(cpu))
		goto unlock;
	memset(page, 0, PAGE_SIZE);
	memcpy(page, code, sizeof(code));
	id = per_cpu(x86_cpu_to_apicid, cpu);
	preempt_disable();
	/* Intel SDM 3A, 9.4.4.1: INIT, 10 ms, two startup IPIs. */
	error = interrupt(id, 0xc500);
	preempt_enable();
	msleep(10);
	if (!error) {
		interrupt(id, 0x8500);
		interrupt(id, 0x4600 | CODE >> 12);
		udelay(200);
		interrupt(id, 0x4600 | CODE >> 12);
		pr_info("CPU %u (APIC %u) was started\n", cpu, id);
	}
unlock:
	cpus_read_unlock();
	return error;
}

static void __exit sipi_exit(void)
{
}

module_init(sipi_init);
module_exit(sipi_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("A CPU of x86-64 beside Linux, a prototype");
