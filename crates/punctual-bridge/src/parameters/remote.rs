//! Parameters of other apps: finding, reading and changing them.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::Shutdown;
use std::path::Path;
use std::time::{Duration, Instant};

use super::protocol::{Answer, Request, receive};
use super::server::SOCKETS;
use super::{Change, Parameter, Refused};
use crate::local::{LIST, app_of, dial, sockets};
use crate::peer::Peer;

/// The time limit for an app's answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// The error of a request to an app.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No app has parameters.
    #[error("no running app of this user has parameters to set{}; start an app with parameters", list_others(.0))]
    NoApp(Vec<Other>),
    /// The requested app does not exist.
    #[error("no running app, program or process {wanted} with parameters; there are {}{}", .found.join(", "), list_others(.others))]
    Unknown {
        /// The requested name.
        wanted: String,
        /// The existing apps.
        found: Vec<String>,
        /// The apps of other users.
        others: Vec<Other>,
    },
    /// Several apps match.
    #[error("{} match {wanted}: specify a process number", .found.join(" and "))]
    Several {
        /// The requested name.
        wanted: String,
        /// The matching apps.
        found: Vec<String>,
    },
    /// The app has ended.
    #[error("{0} has ended, or no longer serves its parameters")]
    Gone(String),
    /// The app does not answer.
    #[error(
        "{0} does not answer: is it stopped? The request is dropped, unless it is already being processed"
    )]
    Silent(String),
    /// Its answer is malformed.
    #[error("malformed answer of {app}: {reason}")]
    Malformed {
        /// The app.
        app: String,
        /// The error.
        reason: String,
    },
    /// The app refused the request, and changed nothing.
    #[error("{0}")]
    Refused(Refused),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The object of the call.
        what: String,
        /// The reason.
        error: io::Error,
    },
}

/// An app of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Other {
    /// The name.
    pub app: String,
    /// The user.
    pub user: u32,
}

fn list_others(others: &[Other]) -> String {
    let of_one = |Other { app, user }: &Other| {
        format!(
            "; {app} belongs to user {user}, and only that user can set its parameters: sudo -u '#{user}' punctual .."
        )
    };
    others.iter().map(of_one).collect()
}

/// The running apps of this network namespace with parameters.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Remotes {
    /// The apps of this user.
    pub found: Vec<Remote>,
    /// The apps of other users.
    pub others: Vec<Other>,
}

/// A running app of this user with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    app: String,
    process: u32,
    socket: String,
    timeout: Duration,
}

impl Remotes {
    /// Finds the running apps.
    ///
    /// # Errors
    /// If the list of sockets cannot be read.
    pub fn running() -> Result<Self, RequestError> {
        let list = fs::read(LIST).map_err(|error| RequestError::System { what: LIST.into(), error })?;
        let mut remotes = Self::default();
        for socket in sockets(&String::from_utf8_lossy(&list), SOCKETS) {
            remotes.probe(socket);
        }
        remotes.found.sort_by(|a, b| (&a.app, a.process).cmp(&(&b.app, b.process)));
        Ok(remotes)
    }

    /// Determines the owner: any user may listen under any name.
    fn probe(&mut self, socket: &str) {
        let Some(app) = app_of(socket, SOCKETS) else { return };
        // It has ended, or its backlog is full, so no other client can connect either.
        let Ok(peer) = dial(socket).and_then(|stream| Peer::of(&stream)) else { return };
        let app = app.to_owned();
        if !peer.is_own() {
            let other = Other { app, user: peer.user };
            if !self.others.contains(&other) {
                self.others.push(other);
            }
            return;
        }
        let process = peer.process;
        self.found.push(Remote { app, process, socket: socket.to_owned(), timeout: REPLY_TIMEOUT });
    }

    /// Returns the app that `wanted` names: by app, program or process number.
    ///
    /// # Errors
    /// If none matches, or more than one.
    pub fn named(&self, wanted: &str) -> Result<&Remote, RequestError> {
        let is_wanted = |remote: &&Remote| remote.is(wanted);
        match self.found.iter().filter(is_wanted).collect::<Vec<_>>()[..] {
            [remote] => Ok(remote),
            [] => {
                let mut others = self.others.clone();
                if self.found.is_empty() {
                    return Err(RequestError::NoApp(others));
                }
                others.retain(|other| other.app == wanted);
                let found = self.found.iter().map(Remote::to_string).collect();
                Err(RequestError::Unknown { wanted: wanted.into(), found, others })
            }
            ref several => {
                let found = several.iter().map(|remote| remote.to_string()).collect();
                Err(RequestError::Several { wanted: wanted.into(), found })
            }
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.app, self.process)
    }
}

impl Remote {
    /// Returns the name of the app.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Returns the process number.
    pub fn process(&self) -> u32 {
        self.process
    }

    fn is(&self, wanted: &str) -> bool {
        self.app == wanted || self.process.to_string() == wanted || self.program().as_deref() == Some(wanted)
    }

    /// Returns the name of the program, if it can be read.
    fn program(&self) -> Option<String> {
        let program = fs::read_link(Path::new("/proc").join(self.process.to_string()).join("exe")).ok()?;
        let name = program.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_suffix(" (deleted)").map_or(name.clone(), str::to_owned))
    }

    /// Returns its parameters and their values.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn list(&self) -> Result<Vec<Parameter>, RequestError> {
        match self.ask(&Request::Get)? {
            Answer::Listed(parameters) => Ok(parameters),
            other => Err(self.unexpected(other)),
        }
    }

    /// Makes all of these assignments, or none; returns the changes.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn set<N: AsRef<str>, V: AsRef<str>>(
        &self,
        assignments: &[(N, V)],
    ) -> Result<Vec<Change>, RequestError> {
        let owned = |(name, value): &(N, V)| (name.as_ref().to_owned(), value.as_ref().to_owned());
        match self.ask(&Request::Set(assignments.iter().map(owned).collect()))? {
            Answer::Changed(changes) => Ok(changes),
            other => Err(self.unexpected(other)),
        }
    }

    fn unexpected(&self, answer: Answer) -> RequestError {
        match answer {
            Answer::Refused(reasons) => RequestError::Refused(Refused(reasons)),
            _ => RequestError::Malformed { app: self.to_string(), reason: "unexpected answer".into() },
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, RequestError> {
        let bytes = self.exchange(request.text().as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => RequestError::Gone(self.to_string()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => RequestError::Silent(self.to_string()),
            _ => RequestError::System { what: self.to_string(), error },
        })?;
        Answer::parse(&bytes).map_err(|reason| RequestError::Malformed { app: self.to_string(), reason })
    }

    fn exchange(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let end = Instant::now() + self.timeout;
        let mut stream = dial(&self.socket)?;
        // By now the name may belong to another user.
        if !Peer::of(&stream)?.is_own() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(self.timeout))?;
        stream.write_all(request)?;
        stream.shutdown(Shutdown::Write)?;
        let answer = receive(&mut stream, end)?;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer)
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
