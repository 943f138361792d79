//! The example `not_send_in_idle` of `punctual`, unchanged.
//!
//! golden: not_send_in_idle
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate programs as std;

#[path = "../../../../crates/punctual/examples/not_send_in_idle.rs"]
mod example;
