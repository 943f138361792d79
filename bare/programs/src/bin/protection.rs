//! Writes to a page that contains only code and constants. The MMU prevents it.
//!
//! exit: 101
#![no_std]
#![no_main]

use punctual_bare::println;

punctual_bare::entry!(main);

static CONSTANT: u32 = 7;

fn main() -> ! {
    println!("writing to a constant");
    // SAFETY: none. The write is forbidden, which is the purpose; the MMU prevents it.
    unsafe { (&raw const CONSTANT).cast_mut().write_volatile(8) };
    println!("and it is {CONSTANT}");
    punctual_bare::exit(0)
}
