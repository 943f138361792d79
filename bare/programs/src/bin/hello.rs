//! Prints a greeting over the UART, and the clocks of the board.
//!
//! plain: it contains neither an app nor threads
#![no_std]
#![no_main]

use punctual_bare::{board, println};

punctual_bare::entry!(main);

fn main() -> ! {
    println!("Hello from {}", board::NAME);
    println!("{}", board::Conditions);
    punctual_bare::exit(0)
}
