//! Recordings of the kernel that the tests run on, one at a time and apart from the other tests, whose load would be in them.

mod agreement;
mod record;
#[path = "../it/recording/mod.rs"]
mod recording;
mod schedule;
mod schedule_kernel;
#[path = "../it/trace_cmd/mod.rs"]
mod trace_cmd;
mod workloads;
