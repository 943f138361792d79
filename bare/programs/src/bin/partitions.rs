//! The example `partitions` of `punctual`, unchanged.
//!
//! golden: partitions
//! emulator: -smp 4
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/partitions.rs"]
mod example;
