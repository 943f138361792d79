//! The example `async_arbiter` of `punctual`, unchanged.
//!
//! golden: async_arbiter
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/async_arbiter.rs"]
mod example;
