//! The server of parameters: its socket, its thread and the store that requests change.

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::connections::{TIMEOUT, serve};
use super::tuning::Store;
use super::{Change, Parameters, Refused, assign};
use crate::local::listen;
use crate::replay;

/// The prefix of the sockets' names. They are abstract: a killed app leaves nothing in the file
/// system.
pub(super) const SOCKETS: &str = "punctual-parameters/";

/// The error of starting the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The name is invalid.
    #[error(
        "{0:?} is not a valid app name: it must consist of up to 48 letters, digits, `-`, `_` and `.`, not only digits"
    )]
    Name(String),
    /// The app's check rejects the initial values.
    #[error("the initial parameters: {0}")]
    Refused(Refused),
    /// The parameters are already served.
    #[error("these parameters are already served")]
    Taken,
    /// The topic for recording them already has a publisher.
    #[error("the topic for recording the parameters already has a publisher")]
    TopicTaken,
    /// The socket cannot be created.
    #[error("the socket for parameters cannot be created: {0}")]
    Socket(io::Error),
    /// The thread cannot be started.
    #[error("the thread `punctual-params` cannot be started: {0}")]
    Thread(io::Error),
}

/// Counts of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TuningReport {
    /// Change requests that were granted.
    pub accepted: u64,
    /// Valid change requests that were refused.
    pub refused: u64,
    /// Requests that were malformed, or that had not arrived by their deadline or when their
    /// connection was closed in favor of a newer one.
    pub malformed: u64,
    /// Requests whose clients had disconnected when their turn came. They change nothing.
    pub abandoned: u64,
    /// Connections of other users, closed without reading.
    pub strangers: u64,
}

impl fmt::Display for TuningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, refused, malformed, abandoned, strangers } = self;
        write!(f, "parameters: {accepted} requests granted, {refused} refused")?;
        for (count, what) in
            [(malformed, "malformed"), (abandoned, "abandoned"), (strangers, "of other users")]
        {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// A running parameter server. Dropping it ends it; the values do not change.
pub struct TuningServer<P: Parameters> {
    store: Arc<Mutex<Store<P>>>,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Parameters> TuningServer<P> {
    /// Makes all of these assignments, or none: the equivalent of `punctual set`, within the
    /// program.
    ///
    /// Real-time safety: none. Allocates and waits for other requests; for `idle`, `init` and
    /// ordinary threads.
    ///
    /// # Errors
    /// [`Refused`], with every reason.
    pub fn set<N: AsRef<str>, V: AsRef<str>>(&self, assignments: &[(N, V)]) -> Result<Vec<Change>, Refused> {
        set(&self.store, assignments)
    }

    /// Returns the present values.
    pub fn parameters(&self) -> P {
        lock(&self.store).now
    }

    /// Returns the counts so far.
    pub fn report(&self) -> TuningReport {
        lock(&self.store).counts
    }

    /// Ends the thread, and returns the counts.
    ///
    /// For ordinary threads: `#[shutdown]`, or after the run of the app.
    pub fn finish(mut self) -> TuningReport {
        self.end();
        self.report()
    }

    #[cfg(test)]
    pub(super) fn store(&self) -> &Mutex<Store<P>> {
        &self.store
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Panics of checks are caught, and the rest of the thread does not panic.
            let _ = thread.join();
        }
    }
}

impl<P: Parameters> Drop for TuningServer<P> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<P: Parameters> fmt::Debug for TuningServer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TuningServer").field("report", &self.report()).finish_non_exhaustive()
    }
}

/// Makes all of these assignments, or none.
///
/// A request with a megabyte of wrong assignments is refused without locking the store. A valid
/// request assigns each parameter at most once, so the time for which the store is locked is
/// bounded by the program's parameters, not by the request.
pub(super) fn set<P: Parameters, N: AsRef<str>, V: AsRef<str>>(
    store: &Mutex<Store<P>>,
    assignments: &[(N, V)],
) -> Result<Vec<Change>, Refused> {
    assign(&P::DEFAULT, assignments).inspect_err(|_| lock(store).counts.refused += 1)?;
    lock(store).set(assignments)
}

pub(super) fn lock<P: Parameters>(store: &Mutex<Store<P>>) -> MutexGuard<'_, Store<P>> {
    // The store is never inconsistent: a panic can only occur before values are replaced.
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn start<P: Parameters>(
    name: &str,
    topic: Option<&'static str>,
    store: Store<P>,
) -> Result<TuningServer<P>, StartError> {
    let listener = listen(SOCKETS, name).map_err(StartError::Socket)?;
    let (stop, stops) = UnixStream::pair().map_err(StartError::Socket)?;
    let store = Arc::new(Mutex::new(store));
    let theirs = Arc::clone(&store);
    // Locked until the initial values are published, so that a recording starts with them even if a
    // client requests a change at once.
    let mut first = lock(&store);
    let thread =
        punctual::background::spawn("punctual-params", move || serve(&listener, &stops, TIMEOUT, &theirs));
    let thread = thread.map_err(StartError::Thread)?;
    if let Some(topic) = topic {
        replay::register_input(topic, &store);
    }
    first.publish();
    drop(first);
    Ok(TuningServer { store, stop: Some(stop), thread: Some(thread) })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
