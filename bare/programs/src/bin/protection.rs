//! Writes where only code and constants are, which the MMU forbids.
//!
//! exit: 101
#![no_std]
#![no_main]

use punctual_bare::println;

punctual_bare::entry!(main);

static CONSTANT: u32 = 7;

fn main() -> ! {
    println!("writing to a constant");
    // SAFETY: that it is not allowed is the point; the MMU keeps it from happening.
    unsafe { (&raw const CONSTANT).cast_mut().write_volatile(8) };
    println!("and it is {CONSTANT}");
    punctual_bare::exit(0)
}
