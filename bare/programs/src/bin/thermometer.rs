//! Reads a thermometer at I2C1, address 0x48, with a driver that depends only on `embedded-hal`.
//!
//! emulator: -device tmp105,id=thermometer,bus=i2c-bus.1,address=0x48
//! needs: raspberry-pi: it uses I2C
//! sample: one board per instruction set
#![no_std]
#![no_main]

use embedded_hal::delay::DelayNs;
use embedded_hal::i2c::I2c;
use lm75::{Address, FaultQueue, Lm75};
use punctual_bare::{println, raspberry_pi};
use rpi_hal::i2c::Controller;
use rpi_hal::{gpio, timer};
use rpi_registers::Peripherals;

punctual_bare::entry!(main);

/// In Hz.
const FREQUENCY: u32 = 50_000;

fn main() -> ! {
    let peripherals = Peripherals::take().expect("this is the first call");
    println!("taken twice: {}", Peripherals::take().is_some());
    let (mut bank, pins) = gpio::split(peripherals.gpio);
    let pins = (pins.gpio2.into_alternate(&mut bank), pins.gpio3.into_alternate(&mut bank));
    let core_clock = raspberry_pi::clocks().core.expect("the firmware reports it");
    let mut i2c = Controller::new(peripherals.i2c1, pins, core_clock, FREQUENCY);
    println!("no device answers at 0x49: {:?}", i2c.write(0x49, &[0]));

    let (mut delay, ..) = timer::split(peripherals.system_timer);
    let mut thermometer = Lm75::new(i2c, Address::default());
    thermometer.set_os_temperature(61.5).expect("it answers");
    thermometer.set_hysteresis_temperature(-12.5).expect("it answers");
    thermometer.set_fault_queue(FaultQueue::_4).expect("it answers");
    // The thermometer has been converting since power-on.
    let before = delay.now();
    delay.delay_ms(5);
    println!("waited for 5 ms: {}", (5_000..5_100).contains(&(delay.now() - before)));
    println!("{:.1} °C", thermometer.read_temperature().expect("it answers"));
    let mut i2c = thermometer.destroy();
    let mut limits = [[0; 2]; 2];
    for (register, limit) in [2, 3].into_iter().zip(&mut limits) {
        i2c.write_read(0x48, &[register], limit).expect("it answers");
    }
    println!("hysteresis and limit: {:?}", limits.map(|limit| f32::from(i16::from_be_bytes(limit)) / 256.0));
    punctual_bare::exit(0)
}
