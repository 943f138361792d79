//! The example `twice` of `punctual`, unchanged.
//!
//! golden: twice
//! main: its own
//! allocates: its report
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

programs::with_main!("twice");
