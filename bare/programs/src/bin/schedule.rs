//! The example `schedule` of `punctual`, unchanged.
//!
//! golden: schedule
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/schedule.rs"]
mod example;
