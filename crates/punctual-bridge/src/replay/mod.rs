//! Replays: recorded inputs reach the app in virtual time, and its messages are compared.
//!
//! `punctual replay` starts the app with the path of the recording in `PUNCTUAL_REPLAY`, and reads
//! the verdict from the file that `PUNCTUAL_REPLAY_VERDICT` names. The first bridge of the process
//! that starts in virtual time performs the replay.

#[cfg(feature = "mcap")]
mod comparison;
#[cfg(feature = "mcap")]
mod difference;
#[cfg(feature = "mcap")]
mod run;
#[cfg(feature = "mcap")]
mod source;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(not(feature = "mcap"))]
pub(crate) use absent::begin;
#[cfg(feature = "mcap")]
pub(crate) use run::begin;
#[cfg(feature = "mcap")]
pub use source::check_replay;

use crate::message::Description;

/// The variable that names the recording to replay.
pub(crate) const REPLAY: &str = "PUNCTUAL_REPLAY";

/// Returns `true` if the process replays a recording: if `punctual replay` has started it.
///
/// The app runs in virtual time then, and its inputs come from the recording: transports are
/// ignored, and [`Topic::record_inputs`](crate::Topic::record_inputs) opens no source. The app need
/// not drive actuators either.
pub fn is_replay() -> bool {
    static REPLAYS: OnceLock<bool> = OnceLock::new();
    *REPLAYS.get_or_init(|| std::env::var_os(REPLAY).is_some())
}

/// An input of an app, which a replay feeds: a receiver of recorded messages.
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "recordings are in this format"))]
pub(crate) trait Input: Send + Sync {
    /// Returns the type of the messages.
    fn description(&self) -> &'static Description;

    /// Passes a message to the app. An error is the reason why it is malformed.
    fn feed(&self, payload: &[u8]) -> Result<(), String>;
}

type Registered = (&'static str, Arc<dyn Input>);

static INPUTS: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// Registers the receiver of a topic, in a replay.
pub(crate) fn register_input(topic: &'static str, input: &Arc<impl Input + 'static>) {
    if is_replay() {
        let input = Arc::clone(input) as Arc<dyn Input>;
        let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.retain(|(other, _)| *other != topic);
        inputs.push((topic, input));
    }
}

/// Returns the receiver of a topic.
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "recordings are in this format"))]
pub(crate) fn find_input(topic: &str) -> Option<Arc<dyn Input>> {
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    inputs.iter().find(|(other, _)| *other == topic).map(|(_, input)| Arc::clone(input))
}

/// Forgets all receivers, at the end of a replay.
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "recordings are in this format"))]
pub(crate) fn clear_inputs() {
    // Dropped after the lock, since receivers contain functions of the program.
    let inputs = std::mem::take(&mut *INPUTS.lock().unwrap_or_else(PoisonError::into_inner));
    drop(inputs);
}

/// Without recordings there are no replays.
#[cfg(not(feature = "mcap"))]
mod absent {
    use crate::Sink;
    use crate::replay::is_replay;

    /// A replay. None exists without the feature `mcap`.
    pub(crate) enum Replay {}

    impl Replay {
        pub(crate) fn offset_ns(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn start(self) -> Result<Box<dyn Sink>, String> {
            match self {}
        }
    }

    /// Fails if a replay is requested.
    pub(crate) fn begin() -> Result<Option<Replay>, String> {
        match is_replay() {
            true => Err("build the app with the feature `mcap` of punctual-bridge".to_owned()),
            false => Ok(None),
        }
    }
}
