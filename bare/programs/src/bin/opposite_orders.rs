//! The example `opposite_orders` of `punctual`, unchanged.
//!
//! golden: opposite_orders
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/opposite_orders.rs"]
mod example;
