//! The pins that the programs use, of each board.
#![no_std]

#[cfg(feature = "raspberry-pi")]
#[path = "pins/raspberry_pi.rs"]
pub mod pins;
#[cfg(not(feature = "raspberry-pi"))]
#[path = "pins/virt.rs"]
pub mod pins;

pub mod bench;
pub mod bystander;
pub mod cycles;
pub mod float;
pub mod kernel_bench;
#[cfg(not(feature = "raspberry-pi"))]
pub mod latency;
