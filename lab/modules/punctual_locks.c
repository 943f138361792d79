// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Devices through which user space holds a kernel lock for a commanded
 * time, following D. B. de Oliveira and R. S. de Oliveira, "Timing analysis of the
 * PREEMPT RT Linux kernel", section 5.
 *
 *	/dev/punctual-raw_spinlock	held with interrupts off
 *	/dev/punctual-spinlock		sleeps and inherits priority on PREEMPT_RT
 *	/dev/punctual-mutex
 *	/dev/punctual-rt_mutex
 *
 * write() of a decimal number commands, for this open file, how many
 * microseconds the lock is to be held. read() takes the lock, spins for that time
 * of the clock, releases the lock, and returns 0.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rtmutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>

static unsigned int max_us = 50000;
module_param(max_us, uint, 0444);
MODULE_PARM_DESC(max_us, "the longest time to hold a lock that may be commanded, in us");

static DEFINE_RAW_SPINLOCK(raw_lock);
static DEFINE_SPINLOCK(spin_lock_);
static DEFINE_MUTEX(mutex_lock_);
static DEFINE_RT_MUTEX(rt_lock);

/* A lock by name, with the function that holds it. */
struct holder {
	struct miscdevice device;
	void (*hold)(u64 ns);
};

/* The state of an open file. */
struct command {
	const struct holder *holder;
	unsigned int us;
};

/* Time continues while the holder is preempted, so every hold ends. */
static void wait_busily(u64 ns)
{
	u64 end = ktime_get_ns() + ns;

	while (ktime_get_ns() < end)
		cpu_relax();
}

static void hold_raw_spinlock(u64 ns)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&raw_lock, flags);
	wait_busily(ns);
	raw_spin_unlock_irqrestore(&raw_lock, flags);
}

static void hold_spinlock(u64 ns)
{
	spin_lock(&spin_lock_);
	wait_busily(ns);
	spin_unlock(&spin_lock_);
}

static void hold_mutex(u64 ns)
{
	mutex_lock(&mutex_lock_);
	wait_busily(ns);
	mutex_unlock(&mutex_lock_);
}

static void hold_rt_mutex(u64 ns)
{
	rt_mutex_lock(&rt_lock);
	wait_busily(ns);
	rt_mutex_unlock(&rt_lock);
}

static int holder_open(struct inode *inode, struct file *file)
{
	/* Opening a misc device leaves it in private_data. */
	struct miscdevice *device = file->private_data;
	struct command *command = kzalloc(sizeof(*command), GFP_KERNEL);

	if (!command)
		return -ENOMEM;
	command->holder = container_of(device, struct holder, device);
	file->private_data = command;
	return nonseekable_open(inode, file);
}

static int holder_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static ssize_t holder_write(struct file *file, const char __user *buffer,
			    size_t count, loff_t *offset)
{
	struct command *command = file->private_data;
	unsigned int us;
	int error = kstrtouint_from_user(buffer, count, 10, &us);

	if (error)
		return error;
	if (us > max_us)
		return -ERANGE;
	WRITE_ONCE(command->us, us);
	return count;
}

static ssize_t holder_read(struct file *file, char __user *buffer,
			   size_t count, loff_t *offset)
{
	struct command *command = file->private_data;

	command->holder->hold((u64)READ_ONCE(command->us) * NSEC_PER_USEC);
	return 0;
}

static const struct file_operations holder_operations = {
	.owner = THIS_MODULE,
	.open = holder_open,
	.release = holder_release,
	.read = holder_read,
	.write = holder_write,
};

#define HOLDER(lock)						\
	{							\
		.device = {					\
			.minor = MISC_DYNAMIC_MINOR,		\
			.name = "punctual-" #lock,		\
			.fops = &holder_operations,		\
		},						\
		.hold = hold_##lock,				\
	}

static struct holder holders[] = {
	HOLDER(raw_spinlock),
	HOLDER(spinlock),
	HOLDER(mutex),
	HOLDER(rt_mutex),
};

static int __init punctual_locks_init(void)
{
	size_t n;

	for (n = 0; n < ARRAY_SIZE(holders); n++) {
		int error = misc_register(&holders[n].device);

		if (error) {
			pr_err("cannot register %s\n", holders[n].device.name);
			while (n--)
				misc_deregister(&holders[n].device);
			return error;
		}
	}
	return 0;
}

static void __exit punctual_locks_exit(void)
{
	size_t n;

	for (n = 0; n < ARRAY_SIZE(holders); n++)
		misc_deregister(&holders[n].device);
}

module_init(punctual_locks_init);
module_exit(punctual_locks_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Devices that hold a lock of the kernel for a commanded time");
