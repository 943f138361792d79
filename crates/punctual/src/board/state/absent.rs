//! Services of a process that boards do not have.

/// Waits for descriptors: none on boards.
#[derive(Debug)]
pub enum Reactor {}

/// The locks of the global executor: none on boards.
#[derive(Debug)]
pub enum Ceilings {}

/// System calls submitted by a partition: none on boards.
#[derive(Debug)]
pub enum Calls {}
