//! The example `big_struct` of `punctual`, unchanged.
//!
//! golden: big_struct
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;
extern crate programs as std;

#[path = "../../../../crates/punctual/examples/big_struct.rs"]
mod example;
