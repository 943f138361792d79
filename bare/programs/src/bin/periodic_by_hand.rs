//! The example `periodic_by_hand` of `punctual`, unchanged.
//!
//! golden: periodic_by_hand
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/periodic_by_hand.rs"]
mod example;
