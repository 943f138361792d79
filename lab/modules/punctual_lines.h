/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Two GPIO lines, named by the labels of their chips: an input for edges, with its
 * interrupt, and an output.
 */
#ifndef PUNCTUAL_LINES_H
#define PUNCTUAL_LINES_H

#include <linux/gpio/consumer.h>
#include <linux/gpio/machine.h>
#include <linux/moduleparam.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

/* The parameters for the lines; a module sets the defaults. */
#define PUNCTUAL_LINES_PARAMETERS(in_number, out_number)				\
	static char *in_chip = "punctual-wires";					\
	module_param(in_chip, charp, 0444);						\
	MODULE_PARM_DESC(in_chip, "the label of the chip that edges come from");	\
	static ushort in_line = in_number;						\
	module_param(in_line, ushort, 0444);						\
	MODULE_PARM_DESC(in_line, "the line of that chip");				\
	static char *out_chip = "punctual-wires";					\
	module_param(out_chip, charp, 0444);						\
	MODULE_PARM_DESC(out_chip, "the label of the chip that pulses go to");		\
	static ushort out_line = out_number;						\
	module_param(out_line, ushort, 0444);						\
	MODULE_PARM_DESC(out_line, "the line of that chip")

struct punctual_lines {
	struct platform_device *device;
	struct gpiod_lookup_table *table;
	struct gpio_desc *in, *out;
	int irq;
};

static inline struct gpio_desc *punctual_line(struct punctual_lines *lines, const char *purpose,
					      const char *chip, ushort number,
					      enum gpiod_flags flags)
{
	struct gpio_desc *desc = gpiod_get(&lines->device->dev, purpose, flags);

	if (IS_ERR(desc))
		pr_err("no line %u of a chip labeled %s as %sput: %ld\n", number, chip,
		       purpose, PTR_ERR(desc));
	return desc;
}

/* Releases the lines from punctual_lines_get(). */
static inline void punctual_lines_put(struct punctual_lines *lines)
{
	if (!IS_ERR_OR_NULL(lines->out))
		gpiod_put(lines->out);
	if (!IS_ERR_OR_NULL(lines->in))
		gpiod_put(lines->in);
	if (lines->table)
		gpiod_remove_lookup_table(lines->table);
	kfree(lines->table);
	platform_device_unregister(lines->device);
}

/* Requests the lines for a device with this name; *lines must be zero. */
static inline int punctual_lines_get(struct punctual_lines *lines, const char *name,
				     const char *in_chip, ushort in_line,
				     const char *out_chip, ushort out_line)
{
	int error = -ENOMEM;

	lines->device = platform_device_register_simple(name, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(lines->device))
		return PTR_ERR(lines->device);
	/* Two lines, and an empty entry that ends the table. */
	lines->table = kzalloc(struct_size(lines->table, table, 3), GFP_KERNEL);
	if (!lines->table)
		goto fail;
	lines->table->dev_id = name;
	lines->table->table[0] = GPIO_LOOKUP(in_chip, in_line, "in", GPIO_ACTIVE_HIGH);
	lines->table->table[1] = GPIO_LOOKUP(out_chip, out_line, "out", GPIO_ACTIVE_HIGH);
	gpiod_add_lookup_table(lines->table);

	lines->in = punctual_line(lines, "in", in_chip, in_line, GPIOD_IN);
	if (IS_ERR(lines->in)) {
		error = PTR_ERR(lines->in);
		goto fail;
	}
	lines->out = punctual_line(lines, "out", out_chip, out_line, GPIOD_OUT_LOW);
	if (IS_ERR(lines->out)) {
		error = PTR_ERR(lines->out);
		goto fail;
	}
	lines->irq = gpiod_to_irq(lines->in);
	if (lines->irq >= 0)
		return 0;
	error = lines->irq;
	pr_err("line %u of chip %s has no interrupt: %d\n", in_line, in_chip, error);
fail:
	punctual_lines_put(lines);
	/* A missing chip might be added later, but the probe is not repeated. */
	return error == -EPROBE_DEFER ? -ENODEV : error;
}

/* Returns whether the output can be driven in interrupt context; logs an error if not. */
static inline bool punctual_lines_fit_interrupts(const struct punctual_lines *lines,
						 const char *out_chip)
{
	if (!gpiod_cansleep(lines->out))
		return true;
	pr_err("chip %s may sleep, which a handler in interrupt context may not\n", out_chip);
	return false;
}

#endif
