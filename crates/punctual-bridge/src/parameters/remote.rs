//! Other apps' parameters: found, read and changed.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::peer::Peer;
use super::protocol::{Answer, Request, receive};
use super::server::SOCKETS;
use super::{Change, Parameter, Refused};

/// The sockets of the network namespace.
const LIST: &str = "/proc/net/unix";
/// In its column of flags: somebody listens there.
const LISTENS: u32 = 0x1_0000;
/// How long an app may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why an app could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No app has parameters.
    #[error("no running app of this user has parameters to set{}", told(.0))]
    NoApp(Vec<Other>),
    /// Not the one that is wanted.
    #[error("no running app, program or process with parameters is called {wanted}; there are {}{}", .found.join(", "), told(.others))]
    Unknown {
        /// What is wanted.
        wanted: String,
        /// Those that there are.
        found: Vec<String>,
        /// Those of other users.
        others: Vec<Other>,
    },
    /// More than one.
    #[error("{} are called {wanted}: give the number of a process", .found.join(" and "))]
    Several {
        /// What is wanted.
        wanted: String,
        /// Those that are called so.
        found: Vec<String>,
    },
    /// It is there no more.
    #[error("{0} has ended, or serves its parameters no more")]
    Gone(String),
    /// It takes no requests.
    #[error(
        "{0} does not answer: is it stopped? What was asked for is dropped, unless it was being done just now"
    )]
    Silent(String),
    /// Its answer is none.
    #[error("{app} answers what is not understood: {reason}")]
    Malformed {
        /// Which.
        app: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It refused, and changed nothing.
    #[error("{0}")]
    Refused(Refused),
    /// The system refused.
    #[error("{what}: {error}")]
    System {
        /// What cannot be used.
        what: String,
        /// Why.
        error: io::Error,
    },
}

/// An app of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Other {
    /// Its name.
    pub app: String,
    /// Whose it is.
    pub user: u32,
}

fn told(others: &[Other]) -> String {
    let of_one = |Other { app, user }: &Other| {
        format!(
            "; {app} belongs to user {user}, who alone can set its parameters: sudo -u '#{user}' punctual .."
        )
    };
    others.iter().map(of_one).collect()
}

/// The running apps of this network namespace whose parameters can be set.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Remotes {
    /// Those of this user.
    pub found: Vec<Remote>,
    /// Those of others.
    pub others: Vec<Other>,
}

/// A running app of this user with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    app: String,
    process: u32,
    socket: String,
    patience: Duration,
}

impl Remotes {
    /// Looks for them.
    ///
    /// # Errors
    /// If the system does not tell its sockets.
    pub fn running() -> Result<Self, AskError> {
        let list = fs::read(LIST).map_err(|error| AskError::System { what: LIST.into(), error })?;
        let mut remotes = Self::default();
        for socket in sockets(&String::from_utf8_lossy(&list)) {
            remotes.look(socket);
        }
        remotes.found.sort_by(|a, b| (&a.app, a.process).cmp(&(&b.app, b.process)));
        Ok(remotes)
    }

    /// Notes whose it is: anybody may listen under any name.
    fn look(&mut self, socket: &str) {
        let Some(app) = app_of(socket) else { return };
        // It has ended meanwhile, or has so many who wait that nobody else gets through.
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
        self.found.push(Remote { app, process, socket: socket.to_owned(), patience: PATIENCE });
    }

    /// The one that `wanted` means: an app's name, a program's or a process.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn named(&self, wanted: &str) -> Result<&Remote, AskError> {
        let is_wanted = |remote: &&Remote| remote.is(wanted);
        match self.found.iter().filter(is_wanted).collect::<Vec<_>>()[..] {
            [remote] => Ok(remote),
            [] => {
                let mut others = self.others.clone();
                if self.found.is_empty() {
                    return Err(AskError::NoApp(others));
                }
                others.retain(|other| other.app == wanted);
                let found = self.found.iter().map(Remote::to_string).collect();
                Err(AskError::Unknown { wanted: wanted.into(), found, others })
            }
            ref several => {
                let found = several.iter().map(|remote| remote.to_string()).collect();
                Err(AskError::Several { wanted: wanted.into(), found })
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
    /// The name of the app.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.process
    }

    fn is(&self, wanted: &str) -> bool {
        self.app == wanted || self.process.to_string() == wanted || self.program().as_deref() == Some(wanted)
    }

    /// The name of the program, if it can be read.
    fn program(&self) -> Option<String> {
        let program = fs::read_link(Path::new("/proc").join(self.process.to_string()).join("exe")).ok()?;
        let name = program.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_suffix(" (deleted)").map_or(name.clone(), str::to_owned))
    }

    /// Its parameters and their values.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn list(&self) -> Result<Vec<Parameter>, AskError> {
        match self.ask(&Request::Get)? {
            Answer::Listed(parameters) => Ok(parameters),
            other => Err(self.unexpected(other)),
        }
    }

    /// Makes all of these assignments, or none; what has changed.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn set<N: AsRef<str>, V: AsRef<str>>(&self, assignments: &[(N, V)]) -> Result<Vec<Change>, AskError> {
        let owned = |(name, value): &(N, V)| (name.as_ref().to_owned(), value.as_ref().to_owned());
        match self.ask(&Request::Set(assignments.iter().map(owned).collect()))? {
            Answer::Changed(changes) => Ok(changes),
            other => Err(self.unexpected(other)),
        }
    }

    fn unexpected(&self, answer: Answer) -> AskError {
        match answer {
            Answer::Refused(reasons) => AskError::Refused(Refused(reasons)),
            _ => AskError::Malformed { app: self.to_string(), reason: "it answers something else".into() },
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, AskError> {
        let bytes = self.exchange(request.text().as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => AskError::Gone(self.to_string()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskError::Silent(self.to_string()),
            _ => AskError::System { what: self.to_string(), error },
        })?;
        Answer::parse(&bytes).map_err(|reason| AskError::Malformed { app: self.to_string(), reason })
    }

    fn exchange(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let end = Instant::now() + self.patience;
        let mut stream = dial(&self.socket)?;
        // The name may have become somebody else's since it was found.
        if !Peer::of(&stream)?.is_own() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(self.patience))?;
        stream.write_all(request)?;
        stream.shutdown(Shutdown::Write)?;
        let answer = receive(&mut stream, end)?;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer)
    }
}

/// A connection that is made at once or not at all: one to a stopped app with many who wait would block for ever.
pub(super) fn dial(socket: &str) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let end = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&end, &SocketAddrUnix::new_abstract_name(socket.as_bytes())?)?;
    Ok(end.into())
}

/// The names of our sockets in the kernel's list.
fn sockets(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
        let name = fields.nth(3)?.strip_prefix('@')?;
        // Connections bear the name of the socket that took them.
        (flags & LISTENS != 0 && name.starts_with(SOCKETS)).then_some(name)
    })
}

/// The name of the app that listens at a socket of this name, if it is such a name.
fn app_of(socket: &str) -> Option<&str> {
    let (app, random) = socket.strip_prefix(SOCKETS)?.split_once('/')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    (super::server::is_name(app) && is_random).then_some(app)
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
