//! Reads, decomposes and exports traces, synthetic ones and those in `data`, in one program that
//! links once.
#![allow(missing_docs, unreachable_pub, reason = "the modules of a test are private to it")]

#[path = "../../fuzz/ctf.rs"]
mod small_ctf;
#[path = "../../fuzz/perf.rs"]
mod small_perf;
#[path = "../../fuzz/writer.rs"]
mod writer;

mod corpus;
mod ctf;
mod deadline;
mod decomposition;
mod endian;
mod exports;
mod grouping;
mod hostile;
mod kernel_habits;
mod machines;
mod missing_events;
mod model;
mod model_truth;
mod page;
mod perf;
mod random;
mod recording;
mod roundtrip;
mod salvage;
mod scenarios;
mod soup;
mod support;
mod trace_cmd;
mod worked_jobs;
