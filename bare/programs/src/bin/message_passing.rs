//! The example `message_passing` of `punctual`, unchanged.
//!
//! golden: message_passing
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/message_passing.rs"]
mod example;
