//! Prints a greeting over the UART.
#![no_std]
#![no_main]

use punctual_bare::{board, println};

punctual_bare::entry!(main);

fn main() -> ! {
    println!("Hello from {}", board::NAME);
    punctual_bare::exit(0)
}
