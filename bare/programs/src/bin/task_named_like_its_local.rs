//! The example `task_named_like_its_local` of `punctual`, unchanged.
//!
//! golden: task_named_like_its_local
//! thorough: raspi2b, raspi3b, raspi4b, virt-a72
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[path = "../../../../crates/punctual/examples/task_named_like_its_local.rs"]
mod example;
