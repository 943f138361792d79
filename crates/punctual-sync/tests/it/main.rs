//! Locks, queues, cells and channels on threads and in processes.
//!
//! The test that forks, and steps through the child, is a separate binary.
#![cfg(not(loom))]

mod pcp_support;
#[path = "../support/mod.rs"]
mod support;

mod asynch_ends;
mod asynch_tasks;
mod msrp_threads;
mod pcp_calls;
mod pcp_fifo;
mod pcp_rules;
mod queue_order;
mod queue_threads;
mod shared_cells;
mod shared_edges;
mod shared_processes;
