//! The example `shared_with_idle` of `punctual`, unchanged.
//!
//! golden: shared_with_idle
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/shared_with_idle.rs"]
mod example;
