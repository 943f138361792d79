//! The example `periodic` of `punctual`, unchanged.
//!
//! golden: periodic
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
// ANCHOR: board
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
// ANCHOR_END: board

#[path = "../../../../crates/punctual/examples/periodic.rs"]
mod example;
