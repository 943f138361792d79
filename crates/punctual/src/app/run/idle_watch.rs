//! Says of an `idle` in virtual time that time does not pass in it.
//!
//! The clock moves only when nothing is left to do at the time it shows, and `idle` is something. One that spins or sleeps
//! for ever would otherwise end in a silent standstill.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use punctual_core::Port;

use crate::app::partition::PartitionState;
use crate::port::format_nanos;
use crate::port::linux::stderr;

/// How long virtual time stands still in `idle` before that is said.
const STANDSTILL: Duration = Duration::from_secs(2);

/// Watches `idle` until dropped.
pub(super) struct IdleWatch {
    watched: Option<Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl IdleWatch {
    /// Watches the `idle` of the partition `home`, whose thread is about to run it.
    pub(super) fn begin(home: &'static PartitionState) -> Self {
        let (watched, is_watched) = channel::<()>();
        let watch = move || {
            let mut before = home.core.port().now();
            while is_watched.recv_timeout(STANDSTILL) == Err(RecvTimeoutError::Timeout) {
                let now = home.core.port().now();
                // A job that takes long is another matter.
                if now == before && home.core.snapshot().level() == 0 && !home.core.is_stopping() {
                    return stderr::line(format_args!(
                        "`idle` has kept virtual time at {} for {} s; time passes when it returns, or calls \
                         `punctual::wait_for_event()`",
                        format_nanos(now.as_ticks() as f64),
                        STANDSTILL.as_secs()
                    ));
                }
                before = now;
            }
        };
        // Where there is no thread to be had the app runs without.
        let watcher = Builder::new().name("idle watch".into()).spawn(watch).ok();
        Self { watched: Some(watched), watcher }
    }
}

impl Drop for IdleWatch {
    fn drop(&mut self) {
        self.watched = None;
        if let Some(watcher) = self.watcher.take() {
            // It has nothing to panic for.
            let _ = watcher.join();
        }
    }
}
