//! Where every microsecond of every real-time job went.
//!
//! The scheduler, interrupt, timer and lock events of a Linux kernel are decomposed into jobs, and each job into the terms
//! of response-time analysis. [`event`] is what everything else here speaks: readers make events of traces, analyses make
//! jobs of events.
#![warn(missing_docs)]

pub mod event;
pub mod read;
pub mod record;
pub mod write;
