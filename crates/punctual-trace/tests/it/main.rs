//! Reads, decomposes and exports traces, synthetic ones and those in `data`, in one program that
//! links once.
#![allow(missing_docs, unreachable_pub, reason = "the modules of a test are private to it")]

#[path = "../../fuzz/ctf.rs"]
mod small_ctf;
#[path = "../../fuzz/perf.rs"]
mod small_perf;
#[path = "../../fuzz/writer.rs"]
mod writer;

mod browser;
mod chains;
mod choice;
mod corpus;
mod ctf;
mod deadline;
mod endian;
mod exports;
mod futex_choice;
mod golden;
mod hostile;
mod kernel_habits;
mod likely;
mod machines;
mod missing_events;
mod model;
mod model_truth;
mod nested_marks;
mod open_jobs;
mod page;
mod perf;
mod random;
mod recording;
mod roundtrip;
mod salvage;
mod sample;
mod scenarios;
mod scheduler_habits;
mod soup;
mod support;
mod tasks;
mod timers;
mod trace_cmd;
mod unseen_beginnings;
mod worked_jobs;
