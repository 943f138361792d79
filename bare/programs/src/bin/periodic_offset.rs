//! The example `periodic_offset` of `punctual`, unchanged.
//!
//! golden: periodic_offset
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/periodic_offset.rs"]
mod example;
