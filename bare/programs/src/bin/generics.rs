//! The example `generics` of `punctual`, unchanged.
//!
//! golden: generics
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/generics.rs"]
mod example;
