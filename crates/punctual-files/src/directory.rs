//! Directories that no other user can change.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::input::{self, TEXT_LIMIT};
use crate::new_file::{CREATE, NewFile, PRIVATE};
use crate::resolve::{caller, parent, resolve};

/// A directory that belongs to the caller and that no other user can write, apart from
/// [`open_foreign`](Self::open_foreign).
///
/// Accesses use its descriptor: a user who can write the parent directory can rename it, but not
/// redirect accesses to another directory. Names are relative and may have several components.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// The parent directory, and the name there.
    above: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Directory {
    /// Creates a directory with mode 0700.
    ///
    /// # Errors
    /// The name exists, or the parent directory cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let (above, name) = parent(path)?;
        mkdirat(&above, &name, Mode::RWXU)?;
        Self::open_at(above, name, path)
    }

    /// Creates a temporary directory, whose name begins with `prefix`.
    ///
    /// # Errors
    /// The system call fails.
    pub fn temporary(prefix: &str) -> io::Result<Self> {
        Self::create(&std::env::temp_dir().join(format!("{prefix}{:016x}", crate::unique())))
    }

    /// Opens a directory that may belong to another user, who may change its content at any time.
    /// For reading.
    ///
    /// # Errors
    /// The directory does not exist, or a link in the path belongs to another user.
    pub fn open_foreign(path: &Path) -> io::Result<Self> {
        let found = resolve(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(&found.fd, c".", flags, Mode::empty())?;
        Ok(Self { fd, above: found.fd, name: ".".into(), path: path.to_owned() })
    }

    /// Opens an existing directory.
    ///
    /// # Errors
    /// The path is a link, or the directory belongs to another user or can be written by others.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (above, name) = match parent(path) {
            Ok(named) => named,
            // A path such as `..` or `/` has no name that could be exchanged.
            Err(_) => (resolve(path)?.fd, OsString::from(".")),
        };
        Self::open_at(above, name, path)
    }

    pub(crate) fn open_at(above: OwnedFd, name: OsString, path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&above, &name, flags, Mode::empty())?;
        let stat = fstat(&fd)?;
        let others = Mode::from_raw_mode(stat.st_mode) & (Mode::WGRP | Mode::WOTH);
        if stat.st_uid != caller() || !others.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the directory belongs to another user or is writable by others; create one with mode 0700",
            ));
        }
        Ok(Self { fd, above, name, path: path.to_owned() })
    }

    /// Returns the path by which it was opened, for messages. By now the path may name another
    /// directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a directory in this one, including its parents.
    ///
    /// # Errors
    /// The system call fails. An existing directory is not an error.
    pub fn make(&self, name: &Path) -> io::Result<()> {
        let ancestors: Vec<&Path> = name.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
        for path in ancestors.into_iter().rev() {
            match mkdirat(&self.fd, path, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Creates a file with mode 0600, for reading and writing.
    ///
    /// # Errors
    /// The name exists, or the system call fails.
    pub fn create_file(&self, name: &Path) -> io::Result<File> {
        if let Some(directory) = name.parent() {
            self.make(directory)?;
        }
        Ok(openat(&self.fd, name, CREATE, PRIVATE)?.into())
    }

    /// Opens an existing regular file, for reading and writing or for reading only. Never blocks.
    ///
    /// # Errors
    /// The file does not exist or is not a regular file, or the system call fails.
    pub fn open_file(&self, name: &Path, writable: bool) -> io::Result<File> {
        let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.fd, name, flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// Writes a file. An existing file with the name is replaced when the new one is complete.
    ///
    /// # Errors
    /// A system call fails.
    pub fn write(&self, name: &Path, content: &[u8]) -> io::Result<()> {
        let directory = name.parent().filter(|path| !path.as_os_str().is_empty());
        let file = name.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(directory) = directory {
            self.make(directory)?;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(&self.fd, directory.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        let mut file = NewFile::create_at(directory, file.to_owned())?;
        file.write_all(content)?;
        file.commit()
    }

    /// Reads a file of at most 64 MiB: another user may have written it.
    ///
    /// # Errors
    /// The file does not exist or is not a regular file, or a system call fails.
    /// [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it is longer.
    pub fn read(&self, name: &Path) -> io::Result<Vec<u8>> {
        input::content(self.open_file(name, false)?, TEXT_LIMIT)
    }

    /// Returns the names of the directories in a directory, sorted; empty if the directory does not
    /// exist.
    ///
    /// # Errors
    /// A system call fails.
    pub fn directories(&self, name: &Path) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match openat(&self.fd, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut names = Vec::new();
        for entry in entries(&directory)? {
            let stat = rustix::fs::statat(&directory, &entry, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                names.push(entry);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system call fails.
    pub fn remove_file(&self, name: &Path) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes the directory and its content. Follows no links.
    ///
    /// # Errors
    /// A system call fails, or another directory now has the name.
    pub fn remove(self) -> io::Result<()> {
        empty(&self.fd)?;
        Ok(unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR)?)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the names in a directory.
fn entries(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(OsStr::from_bytes(name.to_bytes()).to_owned());
        }
    }
    Ok(names)
}

fn empty(directory: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for name in entries(directory)? {
        match unlinkat(directory, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // The errors for a directory: the first on Linux, the second according to POSIX.
            Err(Errno::ISDIR | Errno::PERM) => {
                empty(&openat(directory, &name, flags, Mode::empty())?)?;
                unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
