// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Answers each rising edge of a GPIO line by a pulse on another one: the kernel
 * module of the latency test in J. K. Balciunas, "Real-Time Interrupt-driven
 * Concurrency (RTIC) for Modern Application Processors", section 6.1.
 *
 *	insmod punctual_responder.ko form=threaded|hard
 *		in_chip=LABEL in_line=N out_chip=LABEL out_line=N
 *
 * threaded: the handler runs in a kernel thread, SCHED_FIFO 50.
 * hard: it runs in interrupt context, even on PREEMPT_RT (IRQF_NO_THREAD).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/string.h>

#include "punctual_lines.h"

#define NAME "punctual-responder"

static char *form = "threaded";
module_param(form, charp, 0444);
MODULE_PARM_DESC(form, "threaded, or hard: in interrupt context");

PUNCTUAL_LINES_PARAMETERS(1, 2);

/* Written only by the handler, which never runs concurrently. */
static uint answers;
module_param(answers, uint, 0444);
MODULE_PARM_DESC(answers, "how many edges have been answered");

static struct punctual_lines lines;

static irqreturn_t answer_in_interrupt(int number, void *data)
{
	gpiod_set_value(lines.out, 1);
	gpiod_set_value(lines.out, 0);
	WRITE_ONCE(answers, answers + 1);
	return IRQ_HANDLED;
}

static irqreturn_t answer_in_thread(int number, void *data)
{
	gpiod_set_value_cansleep(lines.out, 1);
	gpiod_set_value_cansleep(lines.out, 0);
	WRITE_ONCE(answers, answers + 1);
	return IRQ_HANDLED;
}

static int request_handler(void)
{
	if (!strcmp(form, "threaded"))
		return request_threaded_irq(lines.irq, NULL, answer_in_thread,
					    IRQF_TRIGGER_RISING | IRQF_ONESHOT, NAME, NULL);
	if (!punctual_lines_fit_interrupts(&lines, out_chip))
		return -EINVAL;
	return request_irq(lines.irq, answer_in_interrupt,
			   IRQF_TRIGGER_RISING | IRQF_NO_THREAD, NAME, NULL);
}

static int __init punctual_responder_init(void)
{
	int error;

	if (strcmp(form, "threaded") && strcmp(form, "hard")) {
		pr_err("form=%s: it is threaded or hard\n", form);
		return -EINVAL;
	}
	error = punctual_lines_get(&lines, NAME, in_chip, in_line, out_chip, out_line);
	if (error)
		return error;
	error = request_handler();
	if (error)
		punctual_lines_put(&lines);
	return error;
}

static void __exit punctual_responder_exit(void)
{
	free_irq(lines.irq, NULL);
	punctual_lines_put(&lines);
}

module_init(punctual_responder_init);
module_exit(punctual_responder_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Answers edges of a GPIO line by pulses on another");
