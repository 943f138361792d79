//! The example `init_arguments` of `punctual`, unchanged.
//!
//! golden: init_arguments
//! main: its own
//! allocates: its report
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

programs::with_main!("init_arguments");
