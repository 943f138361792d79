//! Directories that say whether their owner runs.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;

use crate::resolve::is_trusted;
use crate::unique;

/// Locks a file for as long as it is open in this process, so that [`is_locked`] tells others that its owner runs.
///
/// # Errors
/// The file system has no locks.
pub fn lock(file: impl AsFd) -> io::Result<()> {
    Ok(flock(file, FlockOperation::LockExclusive)?)
}

/// Whether a process that runs, in any PID namespace, has [locked](lock) this file through another descriptor.
///
/// # Errors
/// The file system has no locks.
pub fn is_locked(file: impl AsFd) -> io::Result<bool> {
    let file = file.as_fd();
    // Shared, so that two that ask at the same time do not take each other for the owner.
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

/// Attempts at a directory that no other process removes as abandoned before it is locked.
const MAX_ATTEMPTS: usize = 16;

/// A directory that is locked while this value lives: by `flock`, which the kernel releases when the process dies.
///
/// A process number says less: in another PID namespace it names another process, or none, and after a while it is used
/// again. The directory may be in any file system, also in one of the kernel's. Dropping the value unlocks the directory and
/// leaves it where it is.
#[derive(Debug)]
pub struct Owned {
    lock: OwnedFd,
    path: PathBuf,
}

impl Owned {
    /// Makes the directory `PREFIX-PROCESS-NUMBER` with mode 0700 in `parent`, which only root and the caller may be able to
    /// write unless it is sticky.
    ///
    /// # Errors
    /// The system refuses to make, open or lock it.
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

    /// The directories in `parent` whose names begin with `prefix` and whose owners have died, each of them locked. Those of
    /// other users are left out.
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
        // In a file system of the kernel, directories of the caller may belong to root.
        if !is_trusted(&own) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if !try_lock(&lock, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(None);
        }
        // Whoever looks for abandoned directories may have removed it between the creation and the lock.
        let is_linked = rustix::fs::lstat(&path)
            .is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino));
        Ok(is_linked.then_some(Self { lock, path }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory with everything in it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove(self) -> io::Result<()> {
        let removed = fs::remove_dir_all(&self.path);
        // Until then nobody else takes it for abandoned.
        drop(self.lock);
        removed
    }
}
