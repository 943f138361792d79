//! The example `idle` of `punctual`, unchanged.
//!
//! golden: idle
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/idle.rs"]
mod example;
