//! Replays: recorded inputs reach the app in virtual time, and its messages are compared.
//!
//! `punctual replay` starts the app with the path of the recording in `PUNCTUAL_REPLAY`, and reads
//! the verdict from the file that `PUNCTUAL_REPLAY_VERDICT` names. The first bridge of the process
//! that starts in virtual time performs the replay.

#[cfg(not(feature = "mcap"))]
mod absent;
#[cfg(feature = "mcap")]
mod comparison;
#[cfg(feature = "mcap")]
mod difference;
#[cfg(feature = "mcap")]
mod run;
#[cfg(feature = "mcap")]
mod source;

#[cfg(not(feature = "mcap"))]
pub(crate) use absent::begin;
#[cfg(feature = "mcap")]
pub(crate) use run::begin;
#[cfg(feature = "mcap")]
pub use source::check_replay;
