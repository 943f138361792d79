//! The example `priority_order` of `punctual`, unchanged.
//!
//! golden: priority_order
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/priority_order.rs"]
mod example;
