//! Goes wrong on a CPU beside Linux, which says what happened and takes the CPU back.
#![no_std]
#![no_main]

use punctual_bare::println;

punctual_bare::entry!(main);

fn main() -> ! {
    println!("fault: reads what is not mapped");
    // SAFETY: none. It is the point of this program that nothing is there, which the MMU knows.
    let _ = unsafe { (0x7f_0000_0000 as *const u32).read_volatile() };
    punctual_bare::exit(0)
}
