//! The example `schedule_at` of `punctual`, unchanged.
//!
//! golden: schedule_at
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/schedule_at.rs"]
mod example;
