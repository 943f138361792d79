//! A small model of fixed-priority scheduling: scripted threads on one or two CPUs, nested
//! interrupts, locks of three kinds with and without inheritance, and a scheduler that takes time.
//!
//! Time advances in ticks. In every tick each job is in one condition, read off the model's own
//! state, and the tick is counted for it: this is the ground truth. In parallel, the model writes
//! the events that a kernel would have written.
#![allow(unreachable_pub, missing_docs, unused_imports)]

mod machine;
mod threads;
mod truth;

pub use machine::{Machine, Style};
pub use truth::{HandlerTruth, Truth};

pub use super::random::Random;

/// Length of a tick, in ns.
pub const TICK: u64 = 10;
