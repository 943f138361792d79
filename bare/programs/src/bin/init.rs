//! The example `init` of `punctual`, unchanged.
//!
//! golden: init
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/init.rs"]
mod example;
