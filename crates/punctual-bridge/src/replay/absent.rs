//! Without recordings there are no replays.

use crate::Sink;
use crate::inputs::is_replay;

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
