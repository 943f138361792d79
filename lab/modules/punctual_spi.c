// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * An SPI controller with one device that user space reaches through spidev:
 * /dev/spidevB.0, B the number of the bus. Its output is connected to its
 * input; or, with far=1, to a process that has opened /dev/punctual-spi: read()
 * waits at most 5 ms for the next transfer, and returns the sent bytes, or nothing;
 * write() sets the bytes that the transfer returns. Without an answer within 1 ms
 * it returns ones, like an unconnected bus.
 *
 * A transfer takes as long as its bits at the requested speed, or as its answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/spi/spi.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

/* Below this a sleep would take longer than the transfer. */
#define SHORTEST_SLEEP_US 20
/* The longest transfer that a process answers, and its time limit. */
#define LONGEST 64
#define PATIENCE_US 1000
/* The time limit of read(). */
#define PAUSE_US 5000

static bool far;
module_param(far, bool, 0444);
MODULE_PARM_DESC(far, "whether /dev/punctual-spi answers transfers");

static struct platform_device *device;
static struct spi_controller *controller;

/* State shared by a transfer and the answering process, of which there is only one at a time. */
static struct {
	struct mutex lock;
	wait_queue_head_t changed;
	enum { IDLE, ASKED, TAKEN, ANSWERED } state;
	bool is_open;
	size_t length;
	u8 sent[LONGEST];
	u8 answer[LONGEST];
} far_end;

static void answered_by_nobody(struct spi_transfer *transfer)
{
	if (transfer->rx_buf)
		memset(transfer->rx_buf, 0xff, transfer->len);
}

static int ask(struct spi_transfer *transfer)
{
	if (transfer->len > LONGEST)
		return -EMSGSIZE;

	mutex_lock(&far_end.lock);
	if (!far_end.is_open) {
		mutex_unlock(&far_end.lock);
		answered_by_nobody(transfer);
		return 0;
	}
	far_end.length = transfer->len;
	if (transfer->tx_buf)
		memcpy(far_end.sent, transfer->tx_buf, transfer->len);
	else
		memset(far_end.sent, 0, transfer->len);
	WRITE_ONCE(far_end.state, ASKED);
	mutex_unlock(&far_end.lock);
	wake_up(&far_end.changed);

	wait_event_hrtimeout(far_end.changed, READ_ONCE(far_end.state) == ANSWERED,
			     ns_to_ktime(PATIENCE_US * NSEC_PER_USEC));

	mutex_lock(&far_end.lock);
	if (far_end.state != ANSWERED)
		answered_by_nobody(transfer);
	else if (transfer->rx_buf)
		memcpy(transfer->rx_buf, far_end.answer, transfer->len);
	/* A later answer belongs to a finished transfer. */
	far_end.state = IDLE;
	mutex_unlock(&far_end.lock);
	return 0;
}

static int transfer_one(struct spi_controller *bus, struct spi_device *spi,
			struct spi_transfer *transfer)
{
	u64 bits = (u64)transfer->len * BITS_PER_BYTE;
	u64 ns = div_u64(bits * NSEC_PER_SEC, transfer->speed_hz);
	u32 us = div_u64(ns, NSEC_PER_USEC);

	if (far)
		return ask(transfer);

	if (transfer->rx_buf && transfer->tx_buf)
		memcpy(transfer->rx_buf, transfer->tx_buf, transfer->len);
	else if (transfer->rx_buf)
		memset(transfer->rx_buf, 0, transfer->len);

	if (us < SHORTEST_SLEEP_US)
		ndelay(ns);
	else
		usleep_range(us, us + 1);
	return 0;
}

static int far_open(struct inode *inode, struct file *file)
{
	int error = 0;

	mutex_lock(&far_end.lock);
	if (far_end.is_open)
		error = -EBUSY;
	far_end.is_open = true;
	mutex_unlock(&far_end.lock);
	return error;
}

static int far_release(struct inode *inode, struct file *file)
{
	mutex_lock(&far_end.lock);
	far_end.is_open = false;
	mutex_unlock(&far_end.lock);
	return 0;
}

static ssize_t far_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	u8 sent[LONGEST];
	size_t length;
	int error;

	do {
		error = wait_event_interruptible_hrtimeout(far_end.changed,
							   READ_ONCE(far_end.state) == ASKED,
							   ns_to_ktime(PAUSE_US * NSEC_PER_USEC));
		if (error)
			return error == -ETIME ? 0 : error;
		mutex_lock(&far_end.lock);
		/* The transfer may have finished. */
		length = far_end.state == ASKED ? far_end.length : 0;
		if (length) {
			memcpy(sent, far_end.sent, length);
			far_end.state = TAKEN;
		}
		mutex_unlock(&far_end.lock);
	} while (!length);

	length = min(length, size);
	return copy_to_user(to, sent, length) ? -EFAULT : length;
}

static ssize_t far_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	u8 answer[LONGEST] = { 0 };

	if (size > LONGEST)
		return -EMSGSIZE;
	if (copy_from_user(answer, from, size))
		return -EFAULT;

	mutex_lock(&far_end.lock);
	if (far_end.state == TAKEN) {
		memcpy(far_end.answer, answer, LONGEST);
		WRITE_ONCE(far_end.state, ANSWERED);
	}
	mutex_unlock(&far_end.lock);
	wake_up(&far_end.changed);
	return size;
}

static const struct file_operations far_operations = {
	.owner = THIS_MODULE,
	.open = far_open,
	.release = far_release,
	.read = far_read,
	.write = far_write,
};

static struct miscdevice far_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "punctual-spi",
	.fops = &far_operations,
};

/*
 * spidev binds only to devices with known names, not to its own name. Any of them
 * works, since it drives all in the same way.
 */
static struct spi_board_info board_info = {
	.modalias = "spi-petra",
	.max_speed_hz = 50000000,
};

static int __init punctual_spi_init(void)
{
	int error;

	mutex_init(&far_end.lock);
	init_waitqueue_head(&far_end.changed);
	device = platform_device_register_simple("punctual-spi", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	controller = spi_alloc_host(&device->dev, 0);
	if (!controller) {
		error = -ENOMEM;
		goto remove_device;
	}
	controller->bus_num = -1;
	controller->num_chipselect = 1;
	controller->mode_bits = SPI_CPOL | SPI_CS_HIGH | SPI_LSB_FIRST | (far ? 0 : SPI_CPHA);
	controller->bits_per_word_mask = SPI_BPW_MASK(8);
	controller->min_speed_hz = 1000;
	controller->max_speed_hz = board_info.max_speed_hz;
	controller->transfer_one = transfer_one;
	error = spi_register_controller(controller);
	if (error) {
		spi_controller_put(controller);
		goto remove_device;
	}
	error = -ENODEV;
	if (!spi_new_device(controller, &board_info))
		goto unregister;
	if (!far)
		return 0;
	error = misc_register(&far_device);
	if (!error)
		return 0;

unregister:
	spi_unregister_controller(controller);
remove_device:
	pr_err("cannot make the bus: %d\n", error);
	platform_device_unregister(device);
	return error;
}

static void __exit punctual_spi_exit(void)
{
	if (far)
		misc_deregister(&far_device);
	spi_unregister_controller(controller);
	platform_device_unregister(device);
}

module_init(punctual_spi_init);
module_exit(punctual_spi_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("An SPI bus that returns what is sent, or what a process answers, with a spidev on it");
