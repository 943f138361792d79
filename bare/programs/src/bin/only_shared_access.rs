//! The example `only_shared_access` of `punctual`, unchanged.
//!
//! golden: only_shared_access
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate core as std;

#[path = "../../../../crates/punctual/examples/only_shared_access.rs"]
mod example;
