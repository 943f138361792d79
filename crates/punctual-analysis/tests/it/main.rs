//! The analysis against textbooks, an exhaustive oracle, a simulation, and the executor in virtual
//! time.
#![allow(missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod executor;
mod global;
mod hostile;
mod inference;
mod margins;
mod measured;
mod nested;
mod oracle;
mod schema;
mod simulation;
mod spawned;
mod textbook;
