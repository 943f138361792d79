#![doc = include_str!("../README.md")]

pub mod child;
pub mod kernel;
pub mod limits;
pub mod scheduling;
pub mod signals;
