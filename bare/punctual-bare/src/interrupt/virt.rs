//! The interrupts of QEMU's `virt`, those of devices from 32 on. `hw/arm/virt.c` in QEMU.

/// The first UART.
pub const UART0: u32 = 32 + 1;
/// The real-time clock.
pub const RTC: u32 = 32 + 2;
/// The pins.
pub const GPIO: u32 = 32 + 7;
