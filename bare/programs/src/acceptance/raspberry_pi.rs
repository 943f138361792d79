//! The devices of a Raspberry Pi, with three wires between pins of the header:
//!
//! | wire | from | to |
//! |---|---|---|
//! | A | pin 24 (18 on the header) | pin 23 (16) |
//! | B | pin 10 (19), to SPI devices | pin 9 (21), from SPI devices |
//! | C | pin 2 (3), I2C data | pin 17 (11) |

use core::fmt::from_fn;

use embedded_hal::i2c::I2c;
use embedded_hal::spi::{MODE_0, SpiBus};
use punctual_bare::{console, raspberry_pi, time};
use rpi_hal::gpio::{self, Event, Input, Pin, Pull};
use rpi_hal::i2c::{Controller, Error};
use rpi_hal::mailbox::{Clock, Firmware};
use rpi_hal::spi::{Config, Spi};
use rpi_hal::timer;
use rpi_registers::interfaces::{ReadWriteable, Readable, Writeable};
use rpi_registers::uart::{CR, FR, UART};
use rpi_registers::{Block, Peripherals};

use super::{is_near, wait};
use crate::bench::{Property, Report};
use crate::pins::{self, Response, Stimulus};

/// The answer in QEMU to a check that needs a wire.
const NOT_IN_QEMU: &str = "QEMU connects no pins of a Raspberry Pi";

const IS_EMULATED: bool = cfg!(feature = "semihosting");

type SpiPins = (Pin<9, gpio::Alternate<0>>, Pin<10, gpio::Alternate<0>>, Pin<11, gpio::Alternate<0>>);
type I2cPins = (Pin<2, gpio::Alternate<0>>, Pin<3, gpio::Alternate<0>>);

/// The devices that the kit uses.
pub struct Devices {
    timer: timer::Timer,
    /// Result of [`loop_uart`].
    looped: u32,
    spi: (Block<rpi_registers::spi::SPI>, SpiPins),
    i2c: (Block<rpi_registers::i2c::I2C>, I2cPins),
    data_line: Pin<17, Input>,
}

impl core::fmt::Debug for Devices {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Devices")
    }
}

impl Devices {
    /// Takes the devices, and the pins for edges. Must be called before the report begins.
    ///
    /// # Panics
    /// If the peripherals have been taken.
    pub fn take() -> (Self, (Stimulus, Response)) {
        let peripherals = Peripherals::take().expect("nothing else takes them");
        let (mut bank, pins) = gpio::split(peripherals.gpio);
        let spi = (
            pins.gpio9.into_alternate(&mut bank),
            pins.gpio10.into_alternate(&mut bank),
            pins.gpio11.into_alternate(&mut bank),
        );
        let i2c = (pins.gpio2.into_alternate(&mut bank), pins.gpio3.into_alternate(&mut bank));
        let mut data_line = pins.gpio17.into_input(&mut bank, Pull::Off);
        data_line.listen(&mut bank, Event::FallingEdge);
        let edges = pins::stimulus_and_response_of(&mut bank, pins.gpio23, pins.gpio24);
        let devices = Self {
            timer: timer::split(peripherals.system_timer).0,
            looped: loop_uart(&peripherals.uart0),
            spi: (peripherals.spi0, spi),
            i2c: (peripherals.i2c1, i2c),
            data_line,
        };
        (devices, edges)
    }

    pub(super) fn check(self, report: &mut Report) {
        check_firmware(report);
        check_counters(report, self.timer);
        check_uart(report, self.looped);
        check_spi(report, self.spi);
        check_i2c(report, self.i2c, self.data_line);
    }
}

fn check_firmware(report: &mut Report) {
    let unknown = "the firmware does not report it";
    let limit = raspberry_pi::ask(|firmware| firmware.max_clock_rate(Clock::Arm));
    let arm = raspberry_pi::clocks().arm;
    let megahertz =
        |hertz: Option<u32>| from_fn(move |f| write!(f, "{} MHz", hertz.unwrap_or(0) / 1_000_000));
    let property = Property {
        slug: "full-speed",
        rule: "the cores run at their maximum frequency",
        expected: &megahertz(limit),
    };
    match arm.zip(limit) {
        Some((hertz, limit)) => {
            report.property(&property, Ok((&megahertz(arm), is_near(hertz.into(), limit.into()))));
        }
        None => report.property(&property, Err(unknown)),
    }
    let property =
        Property { slug: "throttling", rule: "the power supply and the cooling suffice", expected: &"none" };
    match raspberry_pi::ask(Firmware::throttling) {
        Some(flags) => report.property(&property, Ok((&flags, !flags.is_any()))),
        None => report.property(&property, Err(unknown)),
    }
    let property = Property {
        slug: "temperature",
        rule: "the chip is at an ordinary temperature",
        expected: &"0 to 80 °C",
    };
    match raspberry_pi::ask(Firmware::temperature) {
        Some(millis) => {
            let observed = from_fn(|f| write!(f, "{} °C", millis / 1000));
            report.property(&property, Ok((&observed, (0..80_000).contains(&millis))));
        }
        None => report.property(&property, Err(unknown)),
    }
    let property = Property {
        slug: "revision",
        rule: "the firmware reports the revision of the board",
        expected: &"a code",
    };
    match raspberry_pi::ask(Firmware::board_revision) {
        Some(revision) => {
            report.property(&property, Ok((&from_fn(|f| write!(f, "{revision:#x}")), revision != 0)));
        }
        None => report.property(&property, Err(unknown)),
    }
}

/// Compares the counter of the cores' timers with the system timer, which has another divider.
fn check_counters(report: &mut Report, timer: timer::Timer) {
    const MICROS: u64 = 20_000;
    let (nanos, micros) = (time::now(), timer.now());
    while timer.now() < micros + MICROS {}
    let elapsed = (time::now() - nanos) / 1000;
    report.property(
        &Property {
            slug: "counters",
            rule: "the timers of the cores and the system timer agree",
            expected: &from_fn(|f| write!(f, "{MICROS} µs within 2 %")),
        },
        Ok((&from_fn(|f| write!(f, "{elapsed} µs")), is_near(elapsed, MICROS))),
    );
}

/// Number of bytes that the UART sends to itself.
const LOOPED: u32 = 16;

/// Sends bytes to itself inside the UART of the console; returns how many arrive. They also leave
/// the UART, so this must precede the report.
fn loop_uart(uart: &Block<UART>) -> u32 {
    console::flush();
    while !uart.fr.is_set(FR::RXFE) {
        uart.dr.get();
    }
    uart.cr.modify(CR::LBE::SET);
    let mut right = 0;
    for byte in 0..LOOPED {
        uart.dr.set(0x50 + byte);
        right += u32::from(wait(|| !uart.fr.is_set(FR::RXFE)) && uart.dr.get() & 0xFF == 0x50 + byte);
    }
    console::flush();
    uart.cr.modify(CR::LBE::CLEAR);
    punctual_bare::println!();
    right
}

fn check_uart(report: &mut Report, looped: u32) {
    let property = Property {
        slug: "uart-loop",
        rule: "the UART receives what it sends, without a wire",
        expected: &from_fn(|f| write!(f, "{LOOPED} bytes")),
    };
    if IS_EMULATED && looped == 0 {
        return report.property(&property, Err("this version of QEMU has no loop inside the UART"));
    }
    report.property(&property, Ok((&from_fn(|f| write!(f, "{looped} bytes")), looped == LOOPED)));
}

fn check_spi(report: &mut Report, (registers, pins): (Block<rpi_registers::spi::SPI>, SpiPins)) {
    let property = Property {
        slug: "spi-loop",
        rule: "with wire B, SPI0 receives what it sends, at 1 MHz",
        expected: &"64 bytes in 512 to 1000 µs",
    };
    let Some(core_clock) = raspberry_pi::clocks().core else {
        return report.property(&property, Err("the firmware does not report the core clock"));
    };
    if IS_EMULATED {
        return report.property(&property, Err(NOT_IN_QEMU));
    }
    let mut spi = Spi::new(registers, pins, Config { core_clock, frequency: 1_000_000, mode: MODE_0 });
    let sent: [u8; 64] = core::array::from_fn(|i| (i as u8).wrapping_mul(37) ^ 0x5A);
    let mut received = [0; 64];
    let begin = time::now();
    let Ok(()) = spi.transfer(&mut received, &sent);
    let micros = (time::now() - begin) / 1000;
    if received == [0; 64] || received == [0xFF; 64] {
        return report.property(&property, Err("no wire connects pin 10 (19 on the header) with pin 9 (21)"));
    }
    let right = sent.iter().zip(&received).filter(|(one, other)| one == other).count();
    let observed = from_fn(|f| write!(f, "{right} bytes in {micros} µs"));
    report.property(&property, Ok((&observed, right == 64 && (512..1000).contains(&micros))));
}

/// Addresses a device that does not exist, and counts the edges of the data line.
fn check_i2c(
    report: &mut Report,
    (registers, pins): (Block<rpi_registers::i2c::I2C>, I2cPins),
    mut data_line: Pin<17, Input>,
) {
    /// Reserved for other uses, so no device has it.
    const ADDRESS: u8 = 0x7C;
    const FREQUENCY: u32 = 100_000;
    let property = Property {
        slug: "i2c-bus",
        rule: "I2C1 addresses a device at 100 kHz and reports that none answers; wire C shows the data line",
        expected: &"no acknowledge after 90 to 250 µs, and an edge at pin 17",
    };
    let Some(core_clock) = raspberry_pi::clocks().core else {
        return report.property(&property, Err("the firmware does not report the core clock"));
    };
    let mut i2c = Controller::new(registers, pins, core_clock, FREQUENCY);
    data_line.clear_event();
    let begin = time::now();
    let answer = i2c.write(ADDRESS, &[0]);
    let micros = (time::now() - begin) / 1000;
    let is_refused = answer == Err(Error::NoAcknowledge);
    if IS_EMULATED {
        // QEMU models no bus cycles and connects no pins.
        return match is_refused {
            true => report.property(&property, Err(NOT_IN_QEMU)),
            false => report.property(&property, Ok((&"an answer", false))),
        };
    }
    if !data_line.has_event() && is_refused {
        return report.property(&property, Err("no wire connects pin 2 (3 on the header) with pin 17 (11)"));
    }
    let observed = from_fn(|f| write!(f, "{answer:?} after {micros} µs"));
    report.property(&property, Ok((&observed, is_refused && (90..250).contains(&micros))));
}
