//! The example `complex` of `punctual`, unchanged.
//!
//! golden: complex
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/complex.rs"]
mod example;
