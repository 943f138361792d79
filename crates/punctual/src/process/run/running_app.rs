//! The app that a thread belongs to, for helpers that outlive the call of `init`.

use punctual_core::Instant;

use super::model_file;
use crate::state::runtime::Runtime;
use crate::state::thread;

/// The app whose `init` or task called [`current`](Self::current). Other threads can use it.
#[derive(Debug, Clone, Copy)]
pub struct RunningApp(&'static Runtime);

impl RunningApp {
    /// Returns the app of the calling thread; `None` on threads that do not belong to an app.
    pub fn current() -> Option<Self> {
        thread::get().map(|(partition, _)| Self(partition.runtime))
    }

    /// Returns `true` if it runs in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.0.home.core.port().is_virtual()
    }

    /// Returns the origin of its periodic releases, which is 0 in virtual time; `None` before, in
    /// particular during `init`.
    pub fn grid(&self) -> Option<Instant> {
        self.0.grid()
    }

    /// Returns the declared task set as JSON, as `PUNCTUAL_MODEL` writes it. Allocates.
    pub fn task_set(&self) -> String {
        model_file::text(self.0.host.model)
    }
}
