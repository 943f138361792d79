//! The example `deadlock_free` of `punctual`, unchanged.
//!
//! golden: deadlock_free
//! main: its own
//! virtual-time: in its run
//! allocates: its report
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

programs::with_main!("deadlock_free");
