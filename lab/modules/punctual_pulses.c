// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Sends pulses at a fixed period to a GPIO line and records when each answer
 * arrives on another one: the microcontroller of the tests in C. Cunningham, "Making a
 * Real-Time Operating System for the Raspberry Pi 2B", sections I.D.8 and
 * III.A.5, whose pulses do not wait for answers.
 *
 *	insmod punctual_pulses.ko out_chip=LABEL out_line=N in_chip=LABEL in_line=N
 *
 * write() of "PERIOD_NS COUNT" to /dev/punctual-pulses sends COUNT pulses and
 * returns after the last one, or on a signal. read() returns, as unsigned 64-bit
 * numbers, the number of sent pulses, and the time of each answer on
 * CLOCK_MONOTONIC, since the last write().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/timekeeping.h>

#include "punctual_lines.h"

#define NAME "punctual-pulses"
#define MOST_PULSES 16384
#define SHORTEST_NS 5000
#define LONGEST_NS NSEC_PER_SEC

PUNCTUAL_LINES_PARAMETERS(3, 0);

static struct punctual_lines lines;
static struct hrtimer timer;
static DECLARE_COMPLETION(over);
/* Held while sending and reading; the handlers do not take it. */
static DEFINE_MUTEX(user);
static u64 period;
static u32 wanted;

static struct {
	u64 sent;
	u64 answers[MOST_PULSES];
} record;
/* Written only by the handler of answers while pulses are sent. */
static u32 answered;

/*
 * A period during which interrupts were off also has its pulse; on a line that is
 * sampled only now it merges with the next one into one edge.
 */
static enum hrtimer_restart send(struct hrtimer *expired)
{
	u64 due = hrtimer_forward_now(expired, ns_to_ktime(period));

	record.sent = min_t(u64, record.sent + due, wanted);
	gpiod_set_value(lines.out, 1);
	gpiod_set_value(lines.out, 0);
	if (record.sent < wanted)
		return HRTIMER_RESTART;
	complete(&over);
	return HRTIMER_NORESTART;
}

static irqreturn_t answer(int number, void *data)
{
	u32 n = answered;

	if (n < MOST_PULSES) {
		record.answers[n] = ktime_get_ns();
		/* A reader that sees the number also sees the time. */
		smp_store_release(&answered, n + 1);
	}
	return IRQ_HANDLED;
}

static ssize_t pulses_write(struct file *file, const char __user *buffer, size_t count,
			    loff_t *offset)
{
	char text[32];
	unsigned int ns, pulses;
	int error;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, count))
		return -EFAULT;
	text[count] = '\0';
	if (sscanf(text, "%u %u", &ns, &pulses) != 2)
		return -EINVAL;
	if (ns < SHORTEST_NS || ns > LONGEST_NS || !pulses || pulses > MOST_PULSES)
		return -ERANGE;

	if (mutex_lock_interruptible(&user))
		return -ERESTARTSYS;
	period = ns;
	wanted = pulses;
	record.sent = 0;
	WRITE_ONCE(answered, 0);
	reinit_completion(&over);
	hrtimer_start(&timer, ns_to_ktime(period), HRTIMER_MODE_REL_HARD);
	error = wait_for_completion_interruptible(&over);
	hrtimer_cancel(&timer);
	mutex_unlock(&user);
	/* Not restarted after a signal: some have been sent. */
	return error ? -EINTR : count;
}

static ssize_t pulses_read(struct file *file, char __user *buffer, size_t count,
			   loff_t *offset)
{
	ssize_t result;
	size_t size;

	if (mutex_lock_interruptible(&user))
		return -ERESTARTSYS;
	size = offsetof(typeof(record), answers) +
	       smp_load_acquire(&answered) * sizeof(record.answers[0]);
	result = simple_read_from_buffer(buffer, count, offset, &record, size);
	mutex_unlock(&user);
	return result;
}

static const struct file_operations pulses_operations = {
	.owner = THIS_MODULE,
	.read = pulses_read,
	.write = pulses_write,
};

static struct miscdevice pulses_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = NAME,
	.fops = &pulses_operations,
};

static int __init punctual_pulses_init(void)
{
	int error = punctual_lines_get(&lines, NAME, in_chip, in_line, out_chip, out_line);

	if (error)
		return error;
	error = -EINVAL;
	if (!punctual_lines_fit_interrupts(&lines, out_chip))
		goto put_lines;
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = send;
	error = request_irq(lines.irq, answer, IRQF_TRIGGER_RISING | IRQF_NO_THREAD, NAME, NULL);
	if (error)
		goto put_lines;
	error = misc_register(&pulses_device);
	if (!error)
		return 0;
	pr_err("cannot register %s: %d\n", NAME, error);
	free_irq(lines.irq, NULL);
put_lines:
	punctual_lines_put(&lines);
	return error;
}

static void __exit punctual_pulses_exit(void)
{
	misc_deregister(&pulses_device);
	free_irq(lines.irq, NULL);
	punctual_lines_put(&lines);
}

module_init(punctual_pulses_init);
module_exit(punctual_pulses_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Sends pulses to a GPIO line and notes when they are answered");
