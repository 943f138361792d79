//! The example `overrun_stop` of `punctual`, unchanged.
//!
//! golden: overrun_stop
//! main: its own
//! exit: 1
//! virtual-time: in its run
//! allocates: its report
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

programs::with_main!("overrun_stop");
