//! The example `async_channel` of `punctual`, unchanged.
//!
//! golden: async_channel
//! thorough: raspi2b, raspi3b, raspi4b
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/async_channel.rs"]
mod example;
