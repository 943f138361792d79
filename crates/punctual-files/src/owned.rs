//! Directories that are locked while their owner runs.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;

use crate::resolve::is_trusted;
use crate::unique;

/// The time between two attempts to lock a file.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Locks a file while it is open in this process, so that [`is_locked`] in other processes detects
/// a running owner. Returns `false` if another process still holds the lock after `limit`.
///
/// # Errors
/// The file system does not support locks.
pub fn lock(file: impl AsFd, limit: Duration) -> io::Result<bool> {
    // The wait of the kernel has no limit, and its holder may be stopped.
    let start = Instant::now();
    while !try_lock(&file, FlockOperation::NonBlockingLockExclusive)? {
        if start.elapsed() >= limit {
            return Ok(false);
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
    Ok(true)
}

/// Returns the process that holds a lock on this file, if it is in the caller's PID namespace and
/// `/proc` is mounted.
#[must_use]
pub fn lock_holder(file: impl AsFd) -> Option<u32> {
    let stat = fstat(file).ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let place = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    holder_of(&fs::read_to_string("/proc/locks").ok()?, &place)
}

/// Returns the process that holds a lock on the file at this place. A line such as `1: FLOCK
/// ADVISORY WRITE 812 00:1a:5 0 EOF` is a lock, and one with `->` after the number waits for it.
fn holder_of(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [_, "FLOCK", _, _, process, at, ..] if at == place => process.parse().ok().filter(|&it| it > 0),
        _ => None,
    })
}

/// Returns `true` if a running process, in any PID namespace, has [locked](lock) this file through
/// another descriptor.
///
/// # Errors
/// The file system does not support locks.
pub fn is_locked(file: impl AsFd) -> io::Result<bool> {
    let file = file.as_fd();
    // Shared, so that two concurrent checks do not take each other for the owner.
    let is_free = try_lock(file, FlockOperation::NonBlockingLockShared)?;
    if is_free {
        flock(file, FlockOperation::Unlock)?;
    }
    Ok(!is_free)
}

fn try_lock(file: impl AsFd, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The maximum number of attempts at a directory that no other process removes as abandoned before
/// it is locked.
const MAX_ATTEMPTS: usize = 16;

/// A directory that is locked while this value lives: by `flock`, which the kernel releases when
/// the process dies.
///
/// A process ID is less reliable: in another PID namespace it names another process, or none, and
/// IDs are reused. The directory may be in any file system, including those of the kernel. Dropping
/// the value unlocks the directory but does not remove it.
#[derive(Debug)]
pub struct Owned {
    lock: OwnedFd,
    path: PathBuf,
}

impl Owned {
    /// Creates the directory `PREFIX-PROCESS-NUMBER` with mode 0700 in `parent`, which must be
    /// writable only by root and the caller, or sticky.
    ///
    /// # Errors
    /// The directory cannot be created, opened or locked.
    pub fn create(parent: &Path, prefix: &str) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let path = parent.join(format!("{prefix}{}-{:08x}", std::process::id(), unique() as u32));
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            if let Some(owned) = Self::lock(path)? {
                return Ok(owned);
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Returns the directories in `parent` whose names begin with `prefix` and whose owners have
    /// died, each of them locked. Those of other users are skipped.
    pub fn abandoned(parent: &Path, prefix: &str) -> Vec<Self> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        names.filter_map(|entry| Self::lock(entry.path()).ok().flatten()).collect()
    }

    /// Locks a directory, unless it is locked or gone.
    fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        let own = fstat(&lock)?;
        // In a kernel file system, directories of the caller may belong to root.
        if !is_trusted(&own) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if !try_lock(&lock, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(None);
        }
        // A process searching for abandoned directories may have removed it between the creation
        // and the lock.
        let is_linked = rustix::fs::lstat(&path)
            .is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino));
        Ok(is_linked.then_some(Self { lock, path }))
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and its content.
    ///
    /// # Errors
    /// A system call fails.
    pub fn remove(self) -> io::Result<()> {
        let removed = fs::remove_dir_all(&self.path);
        // Until then no other process considers it abandoned.
        drop(self.lock);
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_holder_of_a_lock_but_not_those_that_wait() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:1a:5 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 00:1a:6 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 9 00:1a:5 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 10 00:1a:5 0 EOF\n\
                     4: FLOCK  ADVISORY  READ -1 fd:00:7 0 EOF\n";
        assert_eq!(holder_of(locks, "00:1a:5"), Some(10));
        assert_eq!(holder_of(locks, "fd:00:7"), None);
        assert_eq!(holder_of(locks, "00:1a:7"), None);
    }
}
