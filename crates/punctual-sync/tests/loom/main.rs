//! Models of the protocols: loom explores their executions. `cargo xtask loom` runs each model in a
//! process.
#![cfg(loom)]

mod model;

mod asynch;
mod broadcast;
mod dead_owners;
mod ends;
mod inbox;
mod msrp;
mod pcp;
mod queue;
mod shared;
mod visibility;
