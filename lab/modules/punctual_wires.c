// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A GPIO chip whose lines are wired in pairs: a level driven on line 2n arrives at
 * line 2n + 1, with an interrupt.
 *
 * gpio-sim is controlled from user space through sysfs, and its lines may sleep,
 * which a handler in interrupt context must not. The lines of this chip never
 * sleep, like those of most SoCs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gpio/driver.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/spinlock.h>

#define WIRES 4

struct wire {
	/* Raises the interrupt, in interrupt context regardless of the caller. */
	struct irq_work raise;
	raw_spinlock_t lock;
	bool high;
	/* The other end has a listener. */
	bool heard;
};

static struct wire wires[WIRES];
/* One interrupt for each wire. */
static struct irq_domain *interrupts;
static struct platform_device *device;

static bool drives(unsigned int line)
{
	return line % 2 == 0;
}

static int wires_get_direction(struct gpio_chip *chip, unsigned int line)
{
	return drives(line) ? GPIO_LINE_DIRECTION_OUT : GPIO_LINE_DIRECTION_IN;
}

static int wires_get(struct gpio_chip *chip, unsigned int line)
{
	return READ_ONCE(wires[line / 2].high);
}

static void wires_set(struct gpio_chip *chip, unsigned int line, int value)
{
	struct wire *wire = &wires[line / 2];
	unsigned long flags;
	unsigned int type;
	bool changes;

	if (!drives(line))
		return;
	raw_spin_lock_irqsave(&wire->lock, flags);
	changes = wire->high != !!value;
	WRITE_ONCE(wire->high, !!value);
	raw_spin_unlock_irqrestore(&wire->lock, flags);
	if (!changes)
		return;

	if (!READ_ONCE(wire->heard))
		return;
	type = irq_get_trigger_type(irq_find_mapping(interrupts, wire - wires));
	/* An edge before the delivery of the last one merges with it. */
	if (type & (value ? IRQ_TYPE_EDGE_RISING : IRQ_TYPE_EDGE_FALLING))
		irq_work_queue(&wire->raise);
}

static void wires_raise(struct irq_work *work)
{
	struct wire *wire = container_of(work, struct wire, raise);

	generic_handle_domain_irq(interrupts, wire - wires);
}

static int wires_direction_output(struct gpio_chip *chip, unsigned int line,
				  int value)
{
	if (!drives(line))
		return -EPERM;
	wires_set(chip, line, value);
	return 0;
}

static int wires_direction_input(struct gpio_chip *chip, unsigned int line)
{
	return drives(line) ? -EPERM : 0;
}

static int wires_to_irq(struct gpio_chip *chip, unsigned int line)
{
	unsigned int irq;

	if (drives(line))
		return -ENXIO;
	irq = irq_create_mapping(interrupts, line / 2);
	return irq ? irq : -ENXIO;
}

static unsigned int listens_at(struct irq_data *data)
{
	return 2 * irqd_to_hwirq(data) + 1;
}

static void wires_irq_mask(struct irq_data *data)
{
	WRITE_ONCE(wires[irqd_to_hwirq(data)].heard, false);
}

static void wires_irq_unmask(struct irq_data *data)
{
	WRITE_ONCE(wires[irqd_to_hwirq(data)].heard, true);
}

static int wires_irq_set_type(struct irq_data *data, unsigned int type)
{
	if (type & ~IRQ_TYPE_EDGE_BOTH)
		return -EINVAL;
	irqd_set_trigger_type(data, type);
	return 0;
}

static int wires_irq_request(struct irq_data *data)
{
	return gpiochip_lock_as_irq(irq_data_get_irq_chip_data(data), listens_at(data));
}

static void wires_irq_release(struct irq_data *data)
{
	gpiochip_unlock_as_irq(irq_data_get_irq_chip_data(data), listens_at(data));
}

static struct irq_chip wires_irq_chip = {
	.name = "punctual-wires",
	.irq_mask = wires_irq_mask,
	.irq_unmask = wires_irq_unmask,
	.irq_set_type = wires_irq_set_type,
	.irq_request_resources = wires_irq_request,
	.irq_release_resources = wires_irq_release,
};

static int wires_irq_map(struct irq_domain *domain, unsigned int irq, irq_hw_number_t wire)
{
	irq_set_chip_and_handler(irq, &wires_irq_chip, handle_simple_irq);
	irq_set_chip_data(irq, domain->host_data);
	irq_modify_status(irq, IRQ_NOREQUEST | IRQ_NOAUTOEN, IRQ_NOPROBE);
	return 0;
}

static void wires_irq_unmap(struct irq_domain *domain, unsigned int irq)
{
	irq_set_handler(irq, NULL);
	irq_domain_reset_irq_data(irq_get_irq_data(irq));
}

static const struct irq_domain_ops wires_irq_ops = {
	.map = wires_irq_map,
	.unmap = wires_irq_unmap,
};

/* The mapping remains when a listener leaves. */
static void wires_remove_interrupts(void *unused)
{
	int n;

	for (n = 0; n < WIRES; n++) {
		irq_work_sync(&wires[n].raise);
		irq_dispose_mapping(irq_find_mapping(interrupts, n));
	}
	irq_domain_remove(interrupts);
}

static struct gpio_chip wires_chip = {
	.label = "punctual-wires",
	.owner = THIS_MODULE,
	.base = -1,
	.ngpio = 2 * WIRES,
	.get_direction = wires_get_direction,
	.direction_input = wires_direction_input,
	.direction_output = wires_direction_output,
	.get = wires_get,
	.set = wires_set,
	.to_irq = wires_to_irq,
};

static int __init punctual_wires_init(void)
{
	struct device *dev;
	int n, error;

	device = platform_device_register_simple("punctual-wires", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	dev = &device->dev;
	for (n = 0; n < WIRES; n++) {
		wires[n].raise = IRQ_WORK_INIT_HARD(wires_raise);
		raw_spin_lock_init(&wires[n].lock);
	}
	interrupts = irq_domain_create_linear(NULL, WIRES, &wires_irq_ops, &wires_chip);
	if (!interrupts) {
		error = -ENOMEM;
		goto fail;
	}
	error = devm_add_action_or_reset(dev, wires_remove_interrupts, NULL);
	if (error)
		goto fail;
	wires_chip.parent = dev;
	error = devm_gpiochip_add_data(dev, &wires_chip, NULL);
	if (!error)
		return 0;
fail:
	pr_err("cannot make the chip: %d\n", error);
	platform_device_unregister(device);
	return error;
}

static void __exit punctual_wires_exit(void)
{
	platform_device_unregister(device);
}

module_init(punctual_wires_init);
module_exit(punctual_wires_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("GPIO lines that are wired in pairs");
