//! Receives a program over the UART, by XMODEM or XMODEM-1K with CRC or checksum, and enters it.
//!
//! `cargo xtask load` appends a trailer with the length, the CRC-32 and the board of the image. The
//! loader enters only an image that equals its trailer; from other senders, such as `sx -k` of
//! lrzsz, it accepts images without one and prints a warning. `cargo xtask bare test punctual-boot
//! lrzsz` tests both senders in QEMU, which does not model caches.
#![no_std]
#![no_main]

use core::alloc::Layout;

use punctual_bare::console::{self, Console};
use punctual_bare::{board, memory, println, time};
use punctual_boot::{Checked, Line, check, receive};

punctual_bare::entry!(main);

/// Maximum size of an image.
const ROOM: usize = 8 << 20;

/// The size of an image that is entered is a multiple of this. Padding follows a shorter one.
const ALIGNMENT: usize = 16;

/// The board's UART.
struct Uart;

impl Line for Uart {
    fn receive(&mut self, timeout: u32) -> Option<u8> {
        let until = time::now() + u64::from(timeout) * 1_000_000;
        loop {
            if let Some(byte) = Console.receive() {
                return Some(byte);
            }
            if time::now() >= until {
                return None;
            }
        }
    }

    fn send(&mut self, byte: u8) {
        Console.send(byte);
    }
}

fn main() -> ! {
    let layout = Layout::from_size_align(ROOM, 4096).expect("it is a power of two");
    let place = memory::take(layout).expect("a board has more memory than that");
    // SAFETY: nothing else uses this memory, and zeros are valid bytes.
    let buffer = unsafe {
        place.write_bytes(0, ROOM);
        core::slice::from_raw_parts_mut(place.as_ptr(), ROOM)
    };
    loop {
        // Printed each time, for clients that connect later, such as `cargo xtask load`.
        println!("punctual-boot on {}: send an image by XMODEM", board::NAME);
        match receive(&mut Uart, buffer) {
            Ok(0) => println!("nothing was sent"),
            Ok(size) => match check(&buffer[..size], board::NAME) {
                Ok(checked) => {
                    let size = match checked {
                        Checked::Complete(length) => {
                            println!("{length} bytes received, with the right CRC-32");
                            length.next_multiple_of(ALIGNMENT)
                        }
                        Checked::Unchecked => {
                            println!("{size} bytes received");
                            println!(
                                "warning: no trailer, so neither the length, the CRC-32 nor the board of the \
                                 image is checked; `cargo xtask load` sends one"
                            );
                            size
                        }
                    };
                    console::flush();
                    // SAFETY: the image is for this board: by its trailer, or without one, the
                    // sender is responsible for that. No other core has been started.
                    unsafe { punctual_bare::enter(&mut buffer[..size]) }
                }
                Err(rejected) => println!("{rejected}"),
            },
            Err(punctual_boot::Error::NoSender) => {}
            Err(error) => println!("{error}"),
        }
    }
}
