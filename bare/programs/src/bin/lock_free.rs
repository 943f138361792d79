//! The example `lock_free` of `punctual`, unchanged.
//!
//! golden: lock_free
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/lock_free.rs"]
mod example;
