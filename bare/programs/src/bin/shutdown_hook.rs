//! The example `shutdown_hook` of `punctual`, unchanged.
//!
//! golden: shutdown_hook
//! allocates: in its app
//! thorough: raspi2b, raspi3b, raspi4b, virt-a7, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/shutdown_hook.rs"]
mod example;
