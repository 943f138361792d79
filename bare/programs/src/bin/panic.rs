//! Panics and prints the backtrace.
//!
//! exit: 101
#![no_std]
#![no_main]

use core::hint::black_box;

punctual_bare::entry!(main);

#[inline(never)]
fn third(numbers: &[u32]) -> u32 {
    numbers[black_box(3)]
}

fn main() -> ! {
    let sum = black_box(third(&[1, 2])) + black_box(1);
    punctual_bare::exit(sum as i32)
}
