//! The example `async_select` of `punctual`, unchanged.
//!
//! golden: async_select
//! thorough: raspi2b, raspi3b, raspi4b
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate core as std;

#[path = "../../../../crates/punctual/examples/async_select.rs"]
mod example;
