//! The example `send_only` of `punctual`, unchanged.
//!
//! golden: send_only
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate core as std;

#[path = "../../../../crates/punctual/examples/send_only.rs"]
mod example;
