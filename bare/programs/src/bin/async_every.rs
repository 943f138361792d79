//! The example `async_every` of `punctual`, unchanged.
//!
//! golden: async_every
//! thorough: raspi2b, raspi3b, raspi4b
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate core as std;

#[path = "../../../../crates/punctual/examples/async_every.rs"]
mod example;
