//! Parameters that are served: their socket, their thread and the store that requests change.

use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::connections::{TIMEOUT, serve};
use super::tuning::Store;
use super::{Change, Parameter, Parameters, Refused, assign, list};

/// Start of the sockets' names. They are abstract: an app that is killed leaves nothing in the file
/// system.
pub(super) const SOCKETS: &str = "punctual-parameters/";
const MAX_NAME: usize = 48;

/// Why parameters are not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The name is not one.
    #[error(
        "{0:?} is no proper name of an app: up to 48 letters, digits, `-`, `_` and `.` are needed, not digits alone"
    )]
    Name(String),
    /// The values at the start are not what the app's own check takes.
    #[error("the parameters at the start: {0}")]
    Refused(Refused),
    /// The parameters are served already.
    #[error("these parameters are served already")]
    Taken,
    /// Somebody publishes the topic that is to record them.
    #[error("the topic that is to record the parameters has a publisher already")]
    TopicTaken,
    /// The socket cannot be made.
    #[error("the socket for parameters cannot be made: {0}")]
    Socket(io::Error),
    /// The thread cannot be started.
    #[error("the thread `punctual-params` cannot be started: {0}")]
    Thread(io::Error),
}

/// What has become of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TuningReport {
    /// Requests to change something that were granted.
    pub accepted: u64,
    /// Requests to change something that were understood and refused.
    pub refused: u64,
    /// Requests that were malformed, or that had not arrived when their time was over or their
    /// connection was closed in favor of a newer one.
    pub malformed: u64,
    /// Requests that nobody waited for any more when their turn came. They change nothing.
    pub abandoned: u64,
    /// Connections of other users, closed without looking at what they want.
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

/// Parameters that are served. Dropping it ends that; the values stay as they are.
pub struct TuningServer<P: Parameters> {
    store: Arc<Mutex<Store<P>>>,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Parameters> TuningServer<P> {
    /// Makes all of these assignments, or none: what `punctual set` does, from within the program.
    ///
    /// Real-time safety: none. Allocates and waits for other requests; for `idle`, `init` and ordinary threads.
    ///
    /// # Errors
    /// [`Refused`], with every reason.
    pub fn set<N: AsRef<str>, V: AsRef<str>>(&self, assignments: &[(N, V)]) -> Result<Vec<Change>, Refused> {
        set(&self.store, assignments)
    }

    /// The present values.
    pub fn parameters(&self) -> P {
        lock(&self.store).now
    }

    /// Access to the parameters for a transport.
    pub fn access(&self) -> ParameterAccess {
        ParameterAccess(Arc::clone(&self.store) as Arc<dyn Access>)
    }

    /// What has become of requests so far.
    pub fn report(&self) -> TuningReport {
        lock(&self.store).counts
    }

    /// Ends the thread, and says what has become of requests.
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
            // Panics of checks are contained, and nothing else there panics.
            let _ = thread.join();
        }
        lock(&self.store).is_over = true;
    }
}

/// Access to the parameters of a [`TuningServer`] for a [transport](crate::transport), whatever
/// their type.
///
/// Requests are checked and counted like those of `punctual set`. For ordinary threads.
#[derive(Clone)]
pub struct ParameterAccess(Arc<dyn Access>);

impl ParameterAccess {
    /// Returns the parameters with their present values.
    pub fn list(&self) -> Vec<Parameter> {
        self.0.list()
    }

    /// Makes all of these assignments, or none.
    ///
    /// # Errors
    /// [`Refused`], with the reasons; also when the server has ended.
    pub fn set(&self, assignments: &[(String, String)]) -> Result<(), Refused> {
        self.0.set(assignments)
    }

    /// Counts a request that the transport itself has refused.
    pub fn count_refused(&self) {
        self.0.count(|counts| counts.refused += 1);
    }

    /// Counts a request that was malformed.
    pub fn count_malformed(&self) {
        self.0.count(|counts| counts.malformed += 1);
    }
}

impl fmt::Debug for ParameterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ParameterAccess").finish()
    }
}

/// A store of parameters of any type.
trait Access: Send + Sync {
    fn list(&self) -> Vec<Parameter>;
    fn set(&self, assignments: &[(String, String)]) -> Result<(), Refused>;
    fn count(&self, add: fn(&mut TuningReport));
}

impl<P: Parameters> Access for Mutex<Store<P>> {
    fn list(&self) -> Vec<Parameter> {
        let now = lock(self).now;
        list(&now)
    }

    fn set(&self, assignments: &[(String, String)]) -> Result<(), Refused> {
        if lock(self).is_over {
            return Err(Refused(vec!["the parameters are served no more".into()]));
        }
        set(self, assignments).map(drop)
    }

    fn count(&self, add: fn(&mut TuningReport)) {
        add(&mut lock(self).counts);
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
/// A request with a megabyte of wrong assignments is refused without the store. What passes assigns
/// each parameter at most once, so the store is held for a time that the program's parameters
/// bound, not the request.
pub(super) fn set<P: Parameters, N: AsRef<str>, V: AsRef<str>>(
    store: &Mutex<Store<P>>,
    assignments: &[(N, V)],
) -> Result<Vec<Change>, Refused> {
    assign(&P::DEFAULT, assignments).inspect_err(|_| lock(store).counts.refused += 1)?;
    lock(store).set(assignments)
}

pub(super) fn lock<P: Parameters>(store: &Mutex<Store<P>>) -> MutexGuard<'_, Store<P>> {
    // Nothing there is ever half changed: a panic can only come before values are replaced.
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it can be told from a process and stands for itself in names of sockets.
pub(super) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !name.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn start<P: Parameters>(name: &str, store: Store<P>) -> Result<TuningServer<P>, StartError> {
    let listener = listen(name).map_err(StartError::Socket)?;
    let (stop, stops) = UnixStream::pair().map_err(StartError::Socket)?;
    let store = Arc::new(Mutex::new(store));
    let theirs = Arc::clone(&store);
    // Whoever asks at once changes what has been published, so that recordings have what was changed.
    let mut first = lock(&store);
    let thread =
        punctual::background::spawn("punctual-params", move || serve(&listener, &stops, TIMEOUT, &theirs));
    let thread = thread.map_err(StartError::Thread)?;
    first.publish();
    drop(first);
    Ok(TuningServer { store, stop: Some(stop), thread: Some(thread) })
}

/// A socket whose name nobody can have taken before.
fn listen(name: &str) -> io::Result<UnixListener> {
    use std::hash::{BuildHasher, RandomState};

    let random = RandomState::new().hash_one(std::process::id());
    let address = SocketAddr::from_abstract_name(format!("{SOCKETS}{name}/{random:016x}"))?;
    let listener = UnixListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
