//! The peripherals of the chip that the program is built for.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::Block;
#[cfg(feature = "bcm2711")]
use crate::gic;
use crate::gpio::GPIO;
use crate::i2c::I2C;
use crate::legacy_interrupts::LegacyInterrupts;
use crate::local::{Core, Cores, Local};
use crate::map::Map;
use crate::mini_uart::MiniUart;
use crate::pwm::PWM;
use crate::spi::SPI;
use crate::system_timer::SystemTimer;
use crate::uart::UART;

const CHIPS: usize = cfg!(feature = "bcm2836") as usize
    + cfg!(feature = "bcm2837") as usize
    + cfg!(feature = "bcm2711") as usize;
const _: () = assert!(CHIPS == 1, "rpi-registers: choose one of the features bcm2836, bcm2837, bcm2711");

#[cfg(feature = "bcm2711")]
const MAP: Map = crate::map::BCM2711;
#[cfg(not(feature = "bcm2711"))]
const MAP: Map = crate::map::BCM2836;

/// All peripherals shared by the cores.
#[derive(Debug)]
#[non_exhaustive]
pub struct Peripherals {
    pub gpio: Block<GPIO>,
    pub i2c0: Block<I2C>,
    pub i2c1: Block<I2C>,
    pub legacy_interrupts: Block<LegacyInterrupts>,
    pub local: Block<Local>,
    pub mini_uart: Block<MiniUart>,
    pub pwm0: Block<PWM>,
    pub spi0: Block<SPI>,
    pub system_timer: Block<SystemTimer>,
    pub uart0: Block<UART>,
    #[cfg(feature = "bcm2711")]
    pub gic_distributor: Block<gic::Distributor>,
}

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Peripherals {
    /// Returns the peripherals, or `None` if they were taken before.
    ///
    /// The enabled feature must be that of the chip, and addresses must be those of the chip, as
    /// without an MMU.
    pub fn take() -> Option<Self> {
        if TAKEN.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: these are the addresses of the chip, and they are taken once.
        unsafe {
            Some(Self {
                gpio: Block::at(MAP.gpio()),
                i2c0: Block::at(MAP.i2c0()),
                i2c1: Block::at(MAP.i2c1()),
                legacy_interrupts: Block::at(MAP.legacy_interrupts()),
                local: Block::at(MAP.local),
                mini_uart: Block::at(MAP.mini_uart()),
                pwm0: Block::at(MAP.pwm0()),
                spi0: Block::at(MAP.spi0()),
                system_timer: Block::at(MAP.system_timer()),
                uart0: Block::at(MAP.uart0()),
                #[cfg(feature = "bcm2711")]
                gic_distributor: Block::at(MAP.gic_distributor().unwrap()),
            })
        }
    }
}

/// The peripherals that are private to each core. They stay on their core.
#[derive(Debug)]
#[non_exhaustive]
pub struct CorePeripherals {
    pub local: Core,
    #[cfg(feature = "bcm2711")]
    pub gic_cpu_interface: Block<gic::CpuInterface>,
    not_send: PhantomData<*const ()>,
}

const CORES: usize = 4;
static CORE_TAKEN: [AtomicBool; CORES] = [const { AtomicBool::new(false) }; CORES];

impl CorePeripherals {
    /// Returns the peripherals of the calling core, or `None` if they were taken before on this
    /// core.
    #[cfg(target_os = "none")]
    pub fn take() -> Option<Self> {
        let affinity: usize;
        // SAFETY: reading MPIDR changes nothing.
        unsafe {
            #[cfg(target_arch = "arm")]
            core::arch::asm!("mrc p15, 0, {}, c0, c0, 5", out(reg) affinity, options(nomem, nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!("mrs {}, mpidr_el1", out(reg) affinity, options(nomem, nostack, preserves_flags));
        }
        Self::take_of(affinity & 3)
    }

    #[cfg_attr(
        not(any(test, target_os = "none")),
        expect(dead_code, reason = "only tests are not on one of the cores")
    )]
    fn take_of(core: usize) -> Option<Self> {
        if CORE_TAKEN[core].swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: these are the addresses of the chip. Each core takes its own part of the local
        // peripherals, once.
        unsafe {
            Some(Self {
                local: Core::new(Block::<Cores>::at(MAP.local + 0x40).leak(), core),
                #[cfg(feature = "bcm2711")]
                gic_cpu_interface: Block::at(MAP.gic_cpu_interface().unwrap()),
                not_send: PhantomData,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_shared_devices_once_and_core_devices_per_core() {
        let peripherals = Peripherals::take().unwrap();
        assert_eq!(peripherals.uart0.address(), MAP.uart0());
        assert_eq!(peripherals.local.address(), MAP.local);
        assert!(Peripherals::take().is_none());
        for core in 0..CORES {
            assert_eq!(CorePeripherals::take_of(core).unwrap().local.number(), core);
            assert!(CorePeripherals::take_of(core).is_none());
        }
    }
}
