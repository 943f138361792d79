//! The thread that makes system calls for partitions that must not enter the kernel; see
//! [`background::submit`].
//!
//! The same thread wakes sleeping workers of other partitions on their behalf. Notifying it would
//! require a system call, so it polls, with [`Pauses`] while there is no work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::background::{self, Consumer, Pauses};
use crate::port::linux::{futex, settings};
use crate::state::fault;
use crate::state::panic_hook::PanicRedirect;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;

/// Shortest sleep of the thread without work.
const PAUSE: Duration = Duration::from_micros(30);

/// The thread that makes the calls of an app, if it has partitions that need one; ended when
/// dropped.
#[derive(Debug)]
pub(crate) struct Caller {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Caller {
    /// Starts it. Once it is `alone`, because the other threads of the app have ended, it ends when
    /// no work is left. `alive` is dropped at its end.
    pub(crate) fn start(
        runtime: &'static Runtime,
        alone: impl Fn() -> bool + Send + 'static,
        alive: impl Send + 'static,
    ) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let calls: Vec<_> =
            runtime.partitions.iter().filter_map(|partition| partition.host.calls?.consumer().ok()).collect();
        let thread = match calls.is_empty() {
            true => None,
            false => {
                let over = Arc::clone(&over);
                let body = move || {
                    // Otherwise a pause would take twice as long.
                    let _ = settings::set_timer_slack();
                    let _redirect = PanicRedirect::to(runtime);
                    make(runtime, calls, || over.load(Ordering::Acquire) || alone());
                    drop(alive);
                };
                Some(background::spawn("punctual-calls", body)?)
            }
        };
        Ok(Self { over, thread })
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Panics of the calls are caught.
            let _ = thread.join();
        }
    }
}

fn make(runtime: &'static Runtime, mut calls: Vec<Consumer>, is_over: impl Fn() -> bool) {
    let mut pauses = Pauses::new(PAUSE);
    loop {
        // Before the scan, so that every call submitted by then is made.
        let last = is_over();
        let sleepers = runtime.partitions.iter().filter(|partition| partition.host.calls.is_none());
        let workers = sleepers.flat_map(|partition| partition.core.workers());
        let mut any = workers.filter(|worker| futex::wake_called(worker)).count() > 0;
        for calls in &mut calls {
            while let Some(call) = calls.pop() {
                any = true;
                fault::contained(runtime, Culprit::Call, || call.run());
            }
        }
        match (any, last) {
            (false, true) => return,
            (false, false) => pauses.sleep(),
            (true, _) => pauses.reset(),
        }
    }
}
