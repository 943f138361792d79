// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The parallel port of a PC as a UIO device: its interrupt wakes processes that
 * wait for /dev/uioN, and sysfs lists its ports for processes that may use them.
 * The kernel's own driver, parport_pc, must not have claimed them.
 *
 *	insmod punctual_parallel.ko base=0x378 line=7
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ioport.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/uio_driver.h>

#define NAME "punctual-parallel"
/* Data, status and control. */
#define PORTS 3

static ushort base = 0x378;
module_param(base, ushort, 0444);
MODULE_PARM_DESC(base, "the first port");
static ushort line = 7;
module_param(line, ushort, 0444);
MODULE_PARM_DESC(line, "the interrupt's number");

static struct platform_device *device;
static struct uio_info info = { .name = NAME, .version = "1" };

/* An edge-triggered line need not be masked: the woken process acknowledges the interrupt. */
static irqreturn_t interrupted(int number, struct uio_info *of)
{
	return IRQ_HANDLED;
}

static int __init punctual_parallel_init(void)
{
	int error;

	if (!request_region(base, PORTS, NAME)) {
		pr_err("ports %#x to %#x are in use; remove parport_pc first\n", base,
		       base + PORTS - 1);
		return -EBUSY;
	}
	device = platform_device_register_simple(NAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device)) {
		error = PTR_ERR(device);
		goto no_device;
	}
	info.irq = line;
	info.handler = interrupted;
	info.port[0].name = "registers";
	info.port[0].start = base;
	info.port[0].size = PORTS;
	info.port[0].porttype = UIO_PORT_X86;
	error = uio_register_device(&device->dev, &info);
	if (!error)
		return 0;
	pr_err("interrupt %u: %d\n", line, error);
	platform_device_unregister(device);
no_device:
	release_region(base, PORTS);
	return error;
}

static void __exit punctual_parallel_exit(void)
{
	uio_unregister_device(&info);
	platform_device_unregister(device);
	release_region(base, PORTS);
}

module_init(punctual_parallel_init);
module_exit(punctual_parallel_exit);

MODULE_DESCRIPTION("The parallel port as a device of UIO");
MODULE_LICENSE("Dual MIT/GPL");
