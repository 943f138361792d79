//! The example `spawn_loop` of `punctual`, unchanged.
//!
//! golden: spawn_loop
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/spawn_loop.rs"]
mod example;
