//! Overflows its stack. The guard page below the stack ends the program.
//!
//! exit: 101
#![no_std]
#![no_main]

use core::hint::black_box;

use punctual_bare::println;

punctual_bare::entry!(main);

#[inline(never)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if depth == 0 { 0 } else { descend(depth + 1) + black_box(frame)[63] }
}

fn main() -> ! {
    println!("{}", descend(1));
    punctual_bare::exit(0)
}
