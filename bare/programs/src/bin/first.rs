//! The example `first` of `punctual`, unchanged.
//!
//! golden: first
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/first.rs"]
mod example;
