//! Models of the executor's protocols: loom explores their executions. `cargo xtask loom` runs each
//! model in a process.
#![cfg(loom)]

mod support;

mod activation;
mod epilogue;
mod heartbeat;
mod idle;
mod interrupt;
mod levels;
mod local;
mod locks;
mod poll;
mod queue;
mod shutdown;
mod sleep;
mod spare;
mod start;
mod unwinding;
mod wait_slot;
