//! The example `async_wake` of `punctual`, unchanged.
//!
//! golden: async_wake
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate programs as std;

#[path = "../../../../crates/punctual/examples/async_wake.rs"]
mod example;
