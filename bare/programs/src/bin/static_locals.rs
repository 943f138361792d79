//! The example `static_locals` of `punctual`, unchanged.
//!
//! golden: static_locals
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/static_locals.rs"]
mod example;
