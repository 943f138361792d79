//! The example `async_task` of `punctual`, unchanged.
//!
//! golden: async_task
//! thorough: raspi2b, raspi3b, raspi4b
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/async_task.rs"]
mod example;
