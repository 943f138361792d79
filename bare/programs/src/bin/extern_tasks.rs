//! The example `extern_tasks` of `punctual`, unchanged.
//!
//! golden: extern_tasks
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/extern_tasks.rs"]
mod example;
