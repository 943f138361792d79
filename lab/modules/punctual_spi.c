// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * An SPI controller whose output is connected to its input, with one device
 * that user space reaches through spidev: /dev/spidevB.0, B the number of the
 * bus.
 *
 * A transfer takes the time that its bits take at the speed that was asked for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/spi/spi.h>

/* Below this a sleep would take longer than the transfer. */
#define SHORTEST_SLEEP_US 20

static struct platform_device *device;
static struct spi_controller *controller;

static int loop_back(struct spi_controller *bus, struct spi_device *spi,
		     struct spi_transfer *transfer)
{
	u64 bits = (u64)transfer->len * BITS_PER_BYTE;
	u64 ns = div_u64(bits * NSEC_PER_SEC, transfer->speed_hz);
	u32 us = div_u64(ns, NSEC_PER_USEC);

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

/*
 * spidev takes devices of known names only, not one of its own name. Any of
 * them will do, as it drives all in the same way.
 */
static struct spi_board_info board_info = {
	.modalias = "spi-petra",
	.max_speed_hz = 50000000,
};

static int __init punctual_spi_init(void)
{
	int error;

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
	controller->mode_bits = SPI_CPOL | SPI_CPHA | SPI_CS_HIGH | SPI_LSB_FIRST;
	controller->bits_per_word_mask = SPI_BPW_MASK(8);
	controller->min_speed_hz = 1000;
	controller->max_speed_hz = board_info.max_speed_hz;
	controller->transfer_one = loop_back;
	error = spi_register_controller(controller);
	if (error) {
		spi_controller_put(controller);
		goto remove_device;
	}
	if (spi_new_device(controller, &board_info))
		return 0;

	error = -ENODEV;
	spi_unregister_controller(controller);
remove_device:
	pr_err("cannot make the bus: %d\n", error);
	platform_device_unregister(device);
	return error;
}

static void __exit punctual_spi_exit(void)
{
	spi_unregister_controller(controller);
	platform_device_unregister(device);
}

module_init(punctual_spi_init);
module_exit(punctual_spi_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("An SPI bus that returns what is sent, with a spidev on it");
