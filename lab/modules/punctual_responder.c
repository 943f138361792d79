// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Answers each rising edge of a GPIO line by a pulse on another one: the kernel
 * module of the latency test in J. K. Balciunas, "Real-Time Interrupt-driven
 * Concurrency (RTIC) for Modern Application Processors", section 6.1.
 *
 *	insmod punctual_responder.ko form=threaded|hard
 *		in_chip=LABEL in_line=N out_chip=LABEL out_line=N
 *
 * threaded: the handler runs in a thread of the kernel, SCHED_FIFO 50.
 * hard: it runs in interrupt context also on PREEMPT_RT (IRQF_NO_THREAD).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gpio/consumer.h>
#include <linux/gpio/machine.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/string.h>

#define NAME "punctual-responder"

static char *form = "threaded";
module_param(form, charp, 0444);
MODULE_PARM_DESC(form, "threaded, or hard: in interrupt context");

static char *in_chip = "punctual-wires";
module_param(in_chip, charp, 0444);
MODULE_PARM_DESC(in_chip, "the label of the chip that edges come from");

static ushort in_line = 1;
module_param(in_line, ushort, 0444);
MODULE_PARM_DESC(in_line, "the line of that chip");

static char *out_chip = "punctual-wires";
module_param(out_chip, charp, 0444);
MODULE_PARM_DESC(out_chip, "the label of the chip that pulses go to");

static ushort out_line = 2;
module_param(out_line, ushort, 0444);
MODULE_PARM_DESC(out_line, "the line of that chip");

/* Only the handler writes it, and no two run at once. */
static uint answers;
module_param(answers, uint, 0444);
MODULE_PARM_DESC(answers, "how many edges have been answered");

static struct platform_device *device;
static struct gpiod_lookup_table *lines;
static struct gpio_desc *in, *out;
static int irq;

static irqreturn_t answer_in_interrupt(int number, void *data)
{
	gpiod_set_value(out, 1);
	gpiod_set_value(out, 0);
	WRITE_ONCE(answers, answers + 1);
	return IRQ_HANDLED;
}

static irqreturn_t answer_in_thread(int number, void *data)
{
	gpiod_set_value_cansleep(out, 1);
	gpiod_set_value_cansleep(out, 0);
	WRITE_ONCE(answers, answers + 1);
	return IRQ_HANDLED;
}

static struct gpio_desc *get_line(const char *purpose, const char *chip, ushort number,
				  enum gpiod_flags flags)
{
	struct gpio_desc *desc = gpiod_get(&device->dev, purpose, flags);

	if (IS_ERR(desc))
		pr_err("no line %u of a chip labelled %s as %sput: %ld\n", number, chip,
		       purpose, PTR_ERR(desc));
	return desc;
}

static int request_handler(void)
{
	if (!strcmp(form, "threaded"))
		return request_threaded_irq(irq, NULL, answer_in_thread,
					    IRQF_TRIGGER_RISING | IRQF_ONESHOT, NAME, NULL);
	if (gpiod_cansleep(out)) {
		pr_err("chip %s may sleep, which form=hard may not\n", out_chip);
		return -EINVAL;
	}
	return request_irq(irq, answer_in_interrupt, IRQF_TRIGGER_RISING | IRQF_NO_THREAD,
			   NAME, NULL);
}

static int __init punctual_responder_init(void)
{
	int error;

	if (strcmp(form, "threaded") && strcmp(form, "hard")) {
		pr_err("form=%s: it is threaded or hard\n", form);
		return -EINVAL;
	}
	device = platform_device_register_simple(NAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	/* Two lines, and an empty entry that ends the table. */
	lines = kzalloc(struct_size(lines, table, 3), GFP_KERNEL);
	if (!lines) {
		error = -ENOMEM;
		goto remove_device;
	}
	lines->dev_id = NAME;
	lines->table[0] = GPIO_LOOKUP(in_chip, in_line, "in", GPIO_ACTIVE_HIGH);
	lines->table[1] = GPIO_LOOKUP(out_chip, out_line, "out", GPIO_ACTIVE_HIGH);
	gpiod_add_lookup_table(lines);

	in = get_line("in", in_chip, in_line, GPIOD_IN);
	if (IS_ERR(in)) {
		error = PTR_ERR(in);
		goto remove_table;
	}
	out = get_line("out", out_chip, out_line, GPIOD_OUT_LOW);
	if (IS_ERR(out)) {
		error = PTR_ERR(out);
		goto put_in;
	}
	irq = gpiod_to_irq(in);
	error = irq < 0 ? irq : request_handler();
	if (!error)
		return 0;

	gpiod_put(out);
put_in:
	gpiod_put(in);
remove_table:
	gpiod_remove_lookup_table(lines);
	kfree(lines);
remove_device:
	platform_device_unregister(device);
	/* A chip that is not there might come later, but nobody asks again. */
	return error == -EPROBE_DEFER ? -ENODEV : error;
}

static void __exit punctual_responder_exit(void)
{
	free_irq(irq, NULL);
	gpiod_put(out);
	gpiod_put(in);
	gpiod_remove_lookup_table(lines);
	kfree(lines);
	platform_device_unregister(device);
}

module_init(punctual_responder_init);
module_exit(punctual_responder_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Answers edges of a GPIO line by pulses on another");
