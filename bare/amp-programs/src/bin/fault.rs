//! Provokes a fault on a CPU that Linux gave up. Linux reports the fault and takes the CPU back.
#![no_std]
#![no_main]

use punctual_bare::println;

punctual_bare::entry!(main);

fn main() -> ! {
    println!("fault: reads what is not mapped");
    // SAFETY: none. Nothing is mapped at this address, so the MMU reports a fault, which is the
    // purpose.
    let _ = unsafe { (0x7f_0000_0000 as *const u32).read_volatile() };
    punctual_bare::exit(0)
}
