//! The example `same_level` of `punctual`, unchanged.
//!
//! golden: same_level
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/same_level.rs"]
mod example;
