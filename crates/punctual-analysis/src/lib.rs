#![doc = include_str!("../README.md")]

pub mod arrival;
pub mod assign;
pub mod bound;
pub mod chain;
pub mod explain;
pub mod fraction;
mod grid;
pub mod infer;
pub mod json;
pub mod margin;
pub mod measured;
pub mod schedule;
pub mod schema;
pub mod supply;
pub mod system;
pub mod time;

mod analyse;
mod blocking;
mod branches;
mod demand;
mod global;
mod offsets;
mod polling;
mod preemptive;
mod release;
mod round;
mod suspension;

pub use analyse::{analyse, first_miss, of_run, utilisation};
