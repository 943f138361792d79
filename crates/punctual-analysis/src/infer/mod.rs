//! Task sets of recordings: what was seen of threads and interrupts, as a model that explains it.
//!
//! The models of arrivals, and the decisions among them, are those of *Brandenburg, Courtaud, Marković, Ye, "LiME: The Linux
//! Real-Time Task Model Extractor", RTAS 2025*, and *Ye, Marković, Brandenburg, "Framework-Agnostic Model Inference for
//! Intra-Thread Real-Time Tasks", RTAS 2026*: least separations, curves of distances ([`curves`]), periodic releases with offset
//! and jitter, also from releases that are known only within windows ([`periodic`]), executions of consecutive jobs
//! ([`executions`]), self-suspension ([`thread`]). Jobs of an app that are long because of the machine are told apart in [`long`]. [`system`](mod@system) makes of these what can be analysed.
//!
//! What is inferred explains what was seen, no more. What was not seen is not known, and never taken for nothing: a thread whose
//! figures are not known has no bound, and neither has what it displaces.

pub mod curves;
pub mod executions;
pub mod long;
pub mod periodic;
pub mod pwcet;
pub mod system;
pub mod thread;

use crate::time::Nanos;

/// When a job was released: between these two instants, which are the same if it is known exactly.
pub type Window = (Nanos, Nanos);
