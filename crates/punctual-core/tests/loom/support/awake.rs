//! Detects that every thread sleeps. loom would detect it too, but only report a deadlock.

use std::sync::{Arc, Mutex};

/// The number of threads of a model that are neither asleep nor finished. loom runs one thread at a
/// time and switches only at operations that it sees; there are none in this type.
pub(super) struct Awake(Mutex<usize>);

impl Awake {
    /// Only the model's first thread exists.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(1)))
    }

    /// Records that `threads` threads were woken or are about to start.
    pub(super) fn more(&self, threads: usize) {
        *self.0.lock().unwrap() += threads;
    }

    /// Records that the calling thread is about to sleep or to end; returns whether another is
    /// still awake.
    pub(super) fn less(&self) -> bool {
        let mut awake = self.0.lock().unwrap();
        *awake -= 1;
        *awake > 0
    }
}

/// The state of a thread's end: running, running and awaited by a joining thread, or finished.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    Awaited,
    Past,
}

/// The state shared by a thread and the one that joins it.
pub(super) struct Ending(Mutex<End>);

impl Ending {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(End::Ahead)))
    }

    /// Ends the thread: a thread that waits for its end counts as awake instead. Returns whether
    /// any thread is awake.
    pub(super) fn end(&self, awake: &Awake) -> bool {
        let before = std::mem::replace(&mut *self.0.lock().unwrap(), End::Past);
        before == End::Awaited || awake.less()
    }

    /// Waits for this thread's end; returns whether any thread is awake.
    pub(super) fn join(&self, awake: &Awake) -> bool {
        let mut end = self.0.lock().unwrap();
        if *end == End::Past {
            return true;
        }
        *end = End::Awaited;
        awake.less()
    }
}
