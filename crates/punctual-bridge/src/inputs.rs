//! The inputs of an app, which a replay feeds.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// A receiver of recorded messages.
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
pub(crate) fn register(topic: &'static str, input: &Arc<impl Input + 'static>) {
    if is_replay() {
        let input = Arc::clone(input) as Arc<dyn Input>;
        let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.retain(|(other, _)| *other != topic);
        inputs.push((topic, input));
    }
}

/// Returns the receiver of a topic.
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "recordings are in this format"))]
pub(crate) fn find(topic: &str) -> Option<Arc<dyn Input>> {
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    inputs.iter().find(|(other, _)| *other == topic).map(|(_, input)| Arc::clone(input))
}

/// Forgets all receivers, at the end of a replay.
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "recordings are in this format"))]
pub(crate) fn clear() {
    // Dropped after the lock, since receivers contain functions of the program.
    let inputs = std::mem::take(&mut *INPUTS.lock().unwrap_or_else(PoisonError::into_inner));
    drop(inputs);
}
