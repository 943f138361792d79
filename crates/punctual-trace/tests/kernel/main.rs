//! Kernel recordings by the tests, one at a time and in a separate program, without the load of
//! other tests.

mod agreement;
mod record;
#[path = "../it/recording/mod.rs"]
mod recording;
mod schedule;
mod schedule_kernel;
#[path = "../it/trace_cmd/mod.rs"]
mod trace_cmd;
mod workloads;
