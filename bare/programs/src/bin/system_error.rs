//! A system error, on ARMv7 an asynchronous abort, is pending from the start, as after a write that
//! the bus could not complete. The program must end with a report as soon as errors are unmasked.
//!
//! `build.rs` injects the error by the bits of the hypervisor, at whose level QEMU enters the
//! image.
//!
//! exit: 101
//! needs: virt: QEMU emulates a hypervisor on this board only
//! emulator: -machine virtualization=on
#![no_std]
#![no_main]

use punctual_bare::println;

punctual_bare::entry!(main);

fn main() -> ! {
    println!("the error is still masked");
    punctual_bare::exit(0)
}
