//! Real threads on this machine's kernel whose terms are known by construction.
//!
//! Each workload measures itself with `CLOCK_MONOTONIC`, which is also the trace's clock: these
//! values are compared with the decomposition of the same run, so any disturbance by the machine is
//! in both. Names and counts have to be right in every round, times within 5 % or 20 µs.
//!
//! Rounds with an event omitted by the kernel are identified by their flaw and do not count; three
//! quarters of the rounds have to be complete. One disturbance affects the measurement and not the
//! trace: a host that takes the CPU away between a reading of the clock and the event next to it.
//! So a quarter of the rounds may differ in time, and a workload is run up to three times. A
//! systematic error would show in every round and every run.
//!
//! Threads are real-time ones on one CPU, for milliseconds at a time, and the kernel ends this
//! process if one runs away.

mod inversion;
mod load;
mod priority_inheritance;
mod stage;
mod times;
