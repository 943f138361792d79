//! The thread that makes the system calls of partitions that must not enter the kernel; see [`helper::submit`].
//!
//! The same thread wakes the sleeping threads that a spawn from there is for. It is never told that there is something to do,
//! for that would take a system call; it looks, every [`PAUSE`] while there is nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::app::fault;
use crate::app::panic_hook::Leaves;
use crate::app::runtime::Runtime;
use crate::app::stop::Culprit;
use crate::helper::{self, Consumer};
use crate::port::linux::{futex, settings};

/// How long the thread sleeps when there is nothing to do.
const PAUSE: Duration = Duration::from_micros(30);

/// The thread that makes the calls of an app, until dropped, if it has partitions that need one.
#[derive(Debug)]
pub(crate) struct Caller {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Caller {
    /// Starts it. It ends when nothing is left to do once it is `alone`, the other threads of the app having ended.
    /// `alive` is dropped at its end.
    pub(crate) fn start(
        runtime: &'static Runtime,
        alone: impl Fn() -> bool + Send + 'static,
        alive: impl Send + 'static,
    ) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let calls: Vec<_> = runtime.parts.iter().filter_map(|part| part.calls?.consumer().ok()).collect();
        let thread = match calls.is_empty() {
            true => None,
            false => {
                let over = Arc::clone(&over);
                let life = move || {
                    // Else a pause would take twice as long.
                    let _ = settings::set_timer_slack();
                    let _leaves = Leaves::to(runtime);
                    make(runtime, calls, || over.load(Ordering::Acquire) || alone());
                    drop(alive);
                };
                Some(helper::spawn("punctual-calls", life)?)
            }
        };
        Ok(Self { over, thread })
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Panics of the calls are caught.
            let _ = thread.join();
        }
    }
}

fn make(runtime: &'static Runtime, mut calls: Vec<Consumer>, is_over: impl Fn() -> bool) {
    loop {
        // Before the look: what was submitted until then is made.
        let last = is_over();
        let sleepers = runtime.parts.iter().filter(|part| part.calls.is_none());
        let workers = sleepers.flat_map(|part| part.partition.workers());
        let mut any = workers.filter(|worker| futex::wake_called(worker)).count() > 0;
        for calls in &mut calls {
            while let Some(call) = calls.pop() {
                any = true;
                fault::contained(runtime, Culprit::Call, || call.run());
            }
        }
        match (any, last) {
            (false, true) => return,
            (false, false) => std::thread::sleep(PAUSE),
            (true, _) => {}
        }
    }
}
