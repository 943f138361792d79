//! The example `prio_inversion` of `punctual`, unchanged.
//!
//! golden: prio_inversion
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/prio_inversion.rs"]
mod example;
