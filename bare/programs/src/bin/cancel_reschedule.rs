//! The example `cancel_reschedule` of `punctual`, unchanged.
//!
//! golden: cancel_reschedule
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/cancel_reschedule.rs"]
mod example;
