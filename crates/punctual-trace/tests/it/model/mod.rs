//! A small model of fixed-priority scheduling: scripted threads on one or two CPUs, nested
//! interrupts, locks of three kinds with and without inheritance, and a scheduler that takes time.
//!
//! Time advances in ticks. In every tick each job is in one condition, read off the model's own
//! state, and the tick is counted for it: this is the ground truth. In parallel, the model writes
//! the events that a kernel would have written.
#![allow(unreachable_pub, missing_docs, unused_imports)]

mod machine;
mod threads;

use std::collections::BTreeMap;

use punctual_trace::jobs::{Actor, HolderState};

pub use self::machine::{Machine, Style};
pub use super::random::Random;

/// Length of a tick, in ns.
pub const TICK: u64 = 10;

/// All in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    pub tid: u32,
    pub release: u64,
    pub start: u64,
    pub end: u64,
    pub overhead: u64,
    pub blocking: u64,
    pub interference: u64,
    pub execution: u64,
    pub jitter_causes: BTreeMap<Actor, u64>,
    pub interference_causes: BTreeMap<Actor, u64>,
    pub waits: Vec<WaitTruth>,
}

/// A run of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerTruth {
    pub actor: Actor,
    pub start: u64,
    pub end: u64,
    pub interference: u64,
}

/// A wait for a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitTruth {
    pub start: u64,
    pub end: u64,
    pub owner: u32,
    /// The lock was passed on during the wait, somewhere along the chain.
    pub passed_on: bool,
    /// Depth, holder, activity and duration.
    pub shares: Vec<(u8, Option<u32>, HolderState, u64)>,
}

impl WaitTruth {
    pub fn share(&mut self, depth: u8, holder: Option<u32>, doing: HolderState, ns: u64) {
        match self.shares.iter_mut().find(|s| (s.0, s.1, s.2) == (depth, holder, doing)) {
            Some(share) => share.3 += ns,
            None => self.shares.push((depth, holder, doing, ns)),
        }
    }
}
