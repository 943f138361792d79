//! The addresses of each chip's peripherals, as seen by the ARM cores.

/// The addresses of a chip. Those of the peripherals differ only by their base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Base of the peripherals, which is 0x7e00_0000 for the VideoCore.
    pub peripherals: usize,
    /// The local peripherals of the cores.
    pub local: usize,
    /// The GIC, if any.
    pub gic: Option<usize>,
}

/// A, p. 6, with the base of the BCM2836; Q, p. 7.
pub const BCM2836: Map = Map { peripherals: 0x3F00_0000, local: 0x4000_0000, gic: None };

/// As the BCM2836.
pub const BCM2837: Map = BCM2836;

/// In the "low peripheral" mode, in which the firmware starts the cores. P, 1.2.4 and 6.5.1.
pub const BCM2711: Map = Map { peripherals: 0xFE00_0000, local: 0xFF80_0000, gic: Some(0xFF84_0000) };

macro_rules! peripherals {
    ($($(#[$doc:meta])* $name:ident = $offset:literal;)*) => {
        impl Map {
            $(
                $(#[$doc])*
                pub const fn $name(&self) -> usize {
                    self.peripherals + $offset
                }
            )*
        }
    };
}

peripherals! {
    /// A, p. 172.
    system_timer = 0x3000;
    /// A, p. 112. The registers start at 0x200 above the base given there.
    legacy_interrupts = 0xB200;
    /// The firmware's wiki, *Accessing mailboxes*. Not among the `Peripherals`, because the board's
    /// start-up code uses it.
    mailbox = 0xB880;
    /// A, p. 90.
    gpio = 0x20_0000;
    /// A, p. 177.
    uart0 = 0x20_1000;
    /// A, p. 152.
    spi0 = 0x20_4000;
    /// A, p. 28.
    i2c0 = 0x20_5000;
    /// A, p. 141, with the address from its errata.
    pwm0 = 0x20_C000;
    /// A, p. 8.
    mini_uart = 0x21_5000;
    /// A, p. 28.
    i2c1 = 0x80_4000;
}

impl Map {
    /// Returns the address of the GIC's distributor. P, 6.5.1.
    pub const fn gic_distributor(&self) -> Option<usize> {
        match self.gic {
            Some(gic) => Some(gic + 0x1000),
            None => None,
        }
    }

    /// Returns the address of the GIC's CPU interface, which is private to each core. P, 6.5.1.
    pub const fn gic_cpu_interface(&self) -> Option<usize> {
        match self.gic {
            Some(gic) => Some(gic + 0x2000),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_match_boards() {
        assert_eq!(BCM2836.uart0(), 0x3F20_1000);
        assert_eq!(BCM2837.legacy_interrupts(), 0x3F00_B200);
        assert_eq!(BCM2711.gpio(), 0xFE20_0000);
        assert_eq!(BCM2711.i2c1(), 0xFE80_4000);
        assert_eq!(BCM2711.gic_distributor(), Some(0xFF84_1000));
        assert_eq!(BCM2711.gic_cpu_interface(), Some(0xFF84_2000));
        assert_eq!(BCM2836.gic_distributor(), None);
    }
}
