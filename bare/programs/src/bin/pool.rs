//! The example `pool` of `punctual`, unchanged.
//!
//! golden: pool
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/pool.rs"]
mod example;
