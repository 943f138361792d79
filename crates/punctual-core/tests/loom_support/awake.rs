//! Notices when everybody sleeps. loom would notice too, but only say that there is a deadlock.

use std::sync::{Arc, Mutex};

/// How many threads of a model are neither asleep nor at their end. loom runs one thread at a time and switches
/// only where it sees an operation, of which there is none in here.
pub(super) struct Awake(Mutex<usize>);

impl Awake {
    /// Only the model's first thread is there.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(1)))
    }

    /// `threads` were woken or are about to be started.
    pub(super) fn more(&self, threads: usize) {
        *self.0.lock().unwrap() += threads;
    }

    /// The calling thread is about to sleep or to end; returns whether another is still awake.
    pub(super) fn less(&self) -> bool {
        let mut awake = self.0.lock().unwrap();
        *awake -= 1;
        *awake > 0
    }
}

/// Whether a thread has ended, or who is to be counted as awake when it does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    Awaited,
    Past,
}

/// What a thread and the one that joins it know of each other.
pub(super) struct Ending(Mutex<End>);

impl Ending {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(End::Ahead)))
    }

    /// The thread ends: if another waits for that, it is awake in its stead. Returns whether anybody is.
    pub(super) fn end(&self, awake: &Awake) -> bool {
        let before = std::mem::replace(&mut *self.0.lock().unwrap(), End::Past);
        before == End::Awaited || awake.less()
    }

    /// Another thread waits for this one to end; returns whether anybody is awake.
    pub(super) fn join(&self, awake: &Awake) -> bool {
        let mut end = self.0.lock().unwrap();
        if *end == End::Past {
            return true;
        }
        *end = End::Awaited;
        awake.less()
    }
}
