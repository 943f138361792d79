//! A small model of fixed-priority scheduling: threads with scripts on one or two CPUs, interrupts that nest, locks of
//! three kinds with and without inheritance, a scheduler that takes time.
//!
//! Time goes in ticks. In every tick each job is in one condition, read off the model's own state, and the tick is counted
//! for it: that is the truth. Beside it the model writes the events a kernel would have written.
#![allow(unreachable_pub, missing_docs, unused_imports)]

mod machine;
mod threads;
mod truth;

pub use machine::{Machine, Style};
pub use truth::{HandlerTruth, Truth};

pub use super::random::Random;

/// Ticks are this long, in ns.
pub const TICK: u64 = 10;
