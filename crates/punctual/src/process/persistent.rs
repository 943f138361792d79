//! State that outlives the process, for an app that is restarted after a crash.
//!
//! `punctual supervise --restart` restarts an app that was killed or has crashed. The state of its
//! tasks is lost, unless they have stored it: a [`Persistent`] is a value in a named region of
//! shared memory that belongs to the supervisor.
//!
//! ```
//! use punctual::persistent::Persistent;
//!
//! // In `init`: what the process before this one stored last, or else the second argument.
//! let (mut persistent, [angle, rate]) = Persistent::open("axis", [0.0_f64, 0.0])?;
//! // In a job, at any level.
//! persistent.store([angle + 0.1, rate]);
//! # Ok::<(), punctual::persistent::PersistentError>(())
//! ```
//!
//! A process may die at any instruction of [`Persistent::store`]: the next one gets the last
//! complete value, never a partial one. That is [`Latest`], whose writer has died.
//!
//! State corrupted by the fault that caused the crash is restored as well. Only the app can detect
//! invalid values: store enough to check them, and store them only after a check.
//!
//! The region is a file in a directory of the supervisor in `/dev/shm`, which is removed when the
//! supervisor ends. Without a supervisor nothing is restored: the value is in the memory of the
//! process, and [`Persistent::outlives_process`] returns `false`.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use punctual_core::heartbeat;
use punctual_sync::shared::{
    Latest, LatestWriter, LayoutError, LayoutField, Plain, attach_at, init_at, region_size,
};
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::port::linux::mapping::Mapping;

/// Maximum length of a name, in bytes.
const LONGEST: usize = 64;

/// A value that outlives the process.
#[derive(Debug)]
pub struct Persistent<T: Plain> {
    // Dropped before the memory it points into.
    writer: LatestWriter<'static, T>,
    _memory: Mapping,
    outlives: bool,
}

/// Reason why the value cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum PersistentError {
    /// The name is not valid as a file name.
    Name {
        /// The name.
        name: String,
    },
    /// The value is already open: in this process, or in another that has not ended.
    Taken {
        /// The name.
        name: String,
    },
    /// The stored value has another type.
    Layout {
        /// The name.
        name: String,
        /// The first difference.
        error: LayoutError,
    },
    /// The system refuses the memory.
    System {
        /// The file; empty without a supervisor.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl Display for PersistentError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => write!(
                f,
                "`{}` cannot be the name of persistent state: take 1 to {LONGEST} letters, digits, `-` and `_`",
                name.escape_debug()
            ),
            Self::Taken { name } => {
                write!(
                    f,
                    "the persistent state `{name}` is in use: drop the other `Persistent`, or end the process \
                     that uses it"
                )
            }
            Self::Layout { name, error } => write!(
                f,
                "the persistent state `{name}` is of another type ({error}): give it another name, or \
                 restart the supervisor"
            ),
            Self::System { path, error } if path.as_os_str().is_empty() => {
                write!(f, "no memory for persistent state: {error}")
            }
            Self::System { path, error } => write!(f, "persistent state in {}: {error}", path.display()),
        }
    }
}

impl Error for PersistentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Layout { error, .. } => Some(error),
            Self::System { error, .. } => Some(error),
            Self::Name { .. } | Self::Taken { .. } => None,
        }
    }
}

impl<T: Plain> Persistent<T> {
    /// Opens the value with that name, and returns the last value that the previous process stored,
    /// or `initial` if there was none.
    ///
    /// For `init`: it makes system calls.
    ///
    /// # Errors
    /// Returns an error if the name is not valid, the value is already open, the stored value has
    /// another type, or the system refuses the memory.
    pub fn open(name: &str, initial: T) -> Result<(Self, T), PersistentError> {
        Self::open_in(
            std::env::var_os(heartbeat::STATE_DIRECTORY).map(PathBuf::from).as_deref(),
            name,
            initial,
        )
    }

    fn open_in(directory: Option<&Path>, name: &str, initial: T) -> Result<(Self, T), PersistentError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(fits) {
            return Err(PersistentError::Name { name: name.into() });
        }
        let Some(directory) = directory else {
            let system = |error| PersistentError::System { path: PathBuf::new(), error };
            let memory = Mapping::new(region_size::<Latest<T>>(), None).map_err(system)?;
            return Self::begin(memory, name, initial, false);
        };
        let path = directory.join(name);
        let system =
            |error: rustix::io::Errno| PersistentError::System { path: path.clone(), error: error.into() };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(system)?;
        // If two processes open it at once, one creates it. A process killed in between releases
        // the lock.
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(PersistentError::Taken { name: name.into() }),
            locked => locked.map_err(system)?,
        }
        let failed = |error| PersistentError::System { path: path.clone(), error };
        let mut length = rustix::fs::fstat(&file).map_err(system)?.st_size as u64;
        if length == 0 {
            length = region_size::<Latest<T>>() as u64;
            // Reports a full file system as an error here, rather than as SIGBUS later.
            punctual_files::allocate(&file, length).map_err(failed)?;
        }
        let length = usize::try_from(length).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
        let memory = Mapping::new(length, Some(file.as_fd())).map_err(failed)?;
        Self::begin(memory, name, initial, true)
    }

    /// Opens the value in the memory, or creates it.
    fn begin(memory: Mapping, name: &str, initial: T, outlives: bool) -> Result<(Self, T), PersistentError> {
        let (start, length) = (memory.start(), memory.length());
        // SAFETY: the memory is mapped until `Persistent` is dropped, and the reference is not
        // moved out of it. It was all zero when it was created, so only `init_at` below has stored
        // the magic number there, and every process with the file uses it by this function.
        let latest = match unsafe { attach_at::<Latest<T>>(start, length) } {
            // The creation was never finished: a process that is still creating it would hold the
            // lock. SAFETY: as above; without the magic number no code has got a reference.
            Err(error) if error.field == LayoutField::Magic => unsafe { init_at(start, length, initial) },
            found => found,
        };
        let latest: &'static Latest<T> =
            latest.map_err(|error| PersistentError::Layout { name: name.into(), error })?;
        let taken = || PersistentError::Taken { name: name.into() };
        let mut reader = latest.reader().or_else(|_| latest.take_over_reader()).map_err(|_| taken())?;
        let writer = latest.writer().or_else(|_| latest.take_over_writer()).map_err(|_| taken())?;
        let value = reader.read().value;
        Ok((Self { writer, _memory: memory, outlives }, value))
    }

    /// Stores `value` in place of the previous one.
    ///
    /// Real-time safety: wait-free, a copy and one atomic instruction.
    pub fn store(&mut self, value: T) {
        self.writer.write(value);
    }

    /// Returns whether the next process gets the stored value, which requires a supervisor.
    #[must_use]
    pub fn outlives_process(&self) -> bool {
        self.outlives
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_reader_gets_last_value() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Persistent::open_in(Some(directory.path()), "axis", [1_u64, 2]);
        let (persistent, found) = open().unwrap();
        assert_eq!((found, persistent.outlives_process()), ([1, 2], true));
        drop(persistent);
        let (mut persistent, found) = open().unwrap();
        assert_eq!(found, [1, 2], "nothing was stored");
        persistent.store([3, 4]);
        persistent.store([5, 6]);
        drop(persistent);
        for _ in 0..2 {
            assert_eq!(open().unwrap().1, [5, 6]);
        }
        assert_eq!(Persistent::open_in(Some(directory.path()), "other", [9_u64, 9]).unwrap().1, [9, 9]);
    }

    #[test]
    fn hands_over_nothing_without_supervisor() {
        let (mut persistent, found) = Persistent::open_in(None, "axis", 7_u32).unwrap();
        persistent.store(8);
        assert_eq!((found, persistent.outlives_process()), (7, false));
        assert_eq!(Persistent::open_in(None, "axis", 7_u32).unwrap().1, 7);
    }

    #[test]
    fn one_holder_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let persistent = Persistent::open_in(Some(directory.path()), "axis", 1_u8).unwrap();
        let second = Persistent::open_in(Some(directory.path()), "axis", 1_u8).unwrap_err();
        assert!(matches!(second, PersistentError::Taken { .. }), "{second}");
        drop(persistent);
        Persistent::open_in(Some(directory.path()), "axis", 1_u8).unwrap();
    }

    #[test]
    fn rejects_impossible_settings() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", "a b", "\u{1b}[2J", &"x".repeat(65)] {
            let error = Persistent::open_in(Some(directory.path()), name, 1_u8).unwrap_err();
            assert!(
                matches!(error, PersistentError::Name { .. }) && !error.to_string().contains('\u{1b}'),
                "{error}"
            );
        }
        drop(Persistent::open_in(Some(directory.path()), "axis", 1_u8).unwrap());
        let error = Persistent::open_in(Some(directory.path()), "axis", [1_u64; 4096]).unwrap_err();
        assert!(matches!(error, PersistentError::Layout { .. }), "{error}");
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        let error = Persistent::open_in(Some(directory.path()), "link", 1_u8).unwrap_err();
        assert!(error.to_string().contains("link: "), "{error}");
        let nowhere = Persistent::open_in(Some(&directory.path().join("no")), "axis", 1_u8).unwrap_err();
        assert!(matches!(nowhere, PersistentError::System { .. }), "{nowhere}");
    }

    #[test]
    fn recreates_unfinished_state() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("axis"), vec![0; region_size::<Latest<u8>>()]).unwrap();
        assert_eq!(Persistent::open_in(Some(directory.path()), "axis", 3_u8).unwrap().1, 3);
    }
}
