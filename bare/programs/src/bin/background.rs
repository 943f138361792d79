//! The example `background` of `punctual`, unchanged.
//!
//! golden: background
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate programs as std;

#[path = "../../../../crates/punctual/examples/background.rs"]
mod example;
