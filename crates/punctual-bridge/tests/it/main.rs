//! Topics, recordings, and helper processes.
//!
//! Tests with a global allocator are separate binaries.

#[path = "../support/threads.rs"]
mod threads;

mod bridge;
mod definitions;
mod diagnostics;
mod helper;
mod incoming;
#[cfg(feature = "mcap")]
mod recordings;
mod simulation;
#[cfg(feature = "mcap")]
mod standard_messages;
mod transports;
