//! The example `nested_locks` of `punctual`, unchanged.
//!
//! golden: nested_locks
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/nested_locks.rs"]
mod example;
