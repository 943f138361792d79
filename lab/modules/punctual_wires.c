// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A GPIO chip whose lines are wired in pairs: what is driven on line 2n arrives
 * at line 2n + 1, with an interrupt.
 *
 * gpio-sim is set from user space through sysfs, and its lines may sleep, which
 * a handler in interrupt context may not. The lines of this chip never sleep,
 * as those of most chips on a SoC.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gpio/driver.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_sim.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/spinlock.h>

#define WIRES 4

struct wire {
	struct gpio_chip *chip;
	/* Of one interrupt: in a larger one a handler could not raise an earlier one. */
	struct irq_domain *interrupt;
	raw_spinlock_t lock;
	bool high;
};

static struct wire wires[WIRES];
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
	unsigned int irq, type;
	bool changes;

	if (!drives(line))
		return;
	raw_spin_lock_irqsave(&wire->lock, flags);
	changes = wire->high != !!value;
	WRITE_ONCE(wire->high, !!value);
	raw_spin_unlock_irqrestore(&wire->lock, flags);
	if (!changes)
		return;

	/* There is none while nobody listens at the other end. */
	irq = irq_find_mapping(wire->interrupt, 0);
	if (!irq)
		return;
	type = irq_get_trigger_type(irq);
	if (type & (value ? IRQ_TYPE_EDGE_RISING : IRQ_TYPE_EDGE_FALLING))
		irq_set_irqchip_state(irq, IRQCHIP_STATE_PENDING, true);
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
	irq = irq_create_mapping(wires[line / 2].interrupt, 0);
	return irq ? irq : -ENXIO;
}

static int wires_irq_requested(struct irq_domain *domain, irq_hw_number_t irq,
			       void *data)
{
	struct wire *wire = data;

	return gpiochip_lock_as_irq(wire->chip, 2 * (wire - wires) + 1);
}

static void wires_irq_released(struct irq_domain *domain, irq_hw_number_t irq,
			       void *data)
{
	struct wire *wire = data;

	gpiochip_unlock_as_irq(wire->chip, 2 * (wire - wires) + 1);
}

/* A listener that leaves does not undo the mapping. */
static void wires_dispose_irq(void *data)
{
	struct wire *wire = data;

	irq_dispose_mapping(irq_find_mapping(wire->interrupt, 0));
}

static const struct irq_sim_ops wires_irq_ops = {
	.irq_sim_irq_requested = wires_irq_requested,
	.irq_sim_irq_released = wires_irq_released,
};

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
		struct wire *wire = &wires[n];

		wire->chip = &wires_chip;
		raw_spin_lock_init(&wire->lock);
		wire->interrupt = devm_irq_domain_create_sim_full(dev, NULL, 1, &wires_irq_ops, wire);
		if (IS_ERR(wire->interrupt)) {
			error = PTR_ERR(wire->interrupt);
			goto fail;
		}
		error = devm_add_action_or_reset(dev, wires_dispose_irq, wire);
		if (error)
			goto fail;
	}
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
