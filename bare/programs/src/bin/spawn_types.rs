//! The example `spawn_types` of `punctual`, unchanged.
//!
//! golden: spawn_types
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/spawn_types.rs"]
mod example;
