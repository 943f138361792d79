//! Real threads on this machine's kernel whose terms are known by construction.
//!
//! Each workload measures itself with `CLOCK_MONOTONIC`, which is the trace's clock too: that is the truth that the
//! decomposition of the same run is compared with, so whatever the machine does to the run is in both. Names and counts have
//! to be right in every round, times within 5 % or 20 µs.
//!
//! Rounds of which the kernel has left out an event are known by their flaw and do not count; three quarters of them have to be
//! complete. One thing is in the truth and not in the trace: a host that takes the CPU away between a reading of the clock and the
//! event beside it. So a quarter of the rounds may be off in time, and a workload is run up to three times. A systematic
//! error shows in every round and every run.
//!
//! Threads are real-time ones on one CPU, for milliseconds at a time, and the kernel ends this process if one runs away.

mod inversion;
mod load;
mod priority_inheritance;
mod stage;
mod times;
