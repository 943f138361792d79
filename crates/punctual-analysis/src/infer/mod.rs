//! Model inference: task sets that explain what a recording shows of threads and interrupts.
//!
//! The arrival models, and the selection among them, follow *Brandenburg, Courtaud, Marković, Ye,
//! "LiME: The Linux Real-Time Task Model Extractor", RTAS 2025*, and *Ye, Marković, Brandenburg,
//! "Framework-Agnostic Model Inference for Intra-Thread Real-Time Tasks", RTAS 2026*: least
//! separations, distance curves ([`curves`]), periodic releases with offset and jitter, also from
//! releases that are known only within windows ([`periodic`]), execution times of consecutive jobs
//! ([`executions`]), and self-suspension ([`thread`]). [`long`] separates jobs that the machine
//! made long. [`system`](mod@system) builds a system for the analysis.
//!
//! An inferred model explains the observations and nothing more. Unobserved quantities are unknown,
//! never zero: a thread with unknown parameters has no bound, nor do the threads that it displaces.

pub mod curves;
pub mod executions;
pub mod long;
pub mod periodic;
pub mod pwcet;
pub mod system;
pub mod thread;

use crate::time::Nanos;

/// Release of a job, between two instants in ns; they are equal if the release is known exactly.
pub type Window = (Nanos, Nanos);
