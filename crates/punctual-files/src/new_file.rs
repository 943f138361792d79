//! Files that appear when they are complete.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::resolve::{Found, caller, is_trusted, parent, resolve};
use crate::unique;

/// Read and write permission for the owner only.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Creates a file, which must not exist.
pub(crate) const CREATE: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The maximum number of attempts at an unused name. Each name has 64 random bits.
const MAX_ATTEMPTS: usize = 16;
const PIPEFS_MAGIC: rustix::fs::FsWord = 0x5049_5045;

/// A file with a temporary name, `.NAME.NUMBER`, until [`commit`](Self::commit). If dropped before,
/// it is removed.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    directory: OwnedFd,
    temporary: OsString,
    name: OsString,
    is_complete: bool,
}

impl NewFile {
    /// Creates a file that will get this path, and replace an existing file or link.
    ///
    /// # Errors
    /// The path names a directory, a device, a FIFO, a socket or an open descriptor, or its
    /// directory cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let (directory, name) = parent(path)?;
        if let Ok(found) = resolve(path) {
            match found.kind() {
                FileType::RegularFile if !found.is_open => {}
                FileType::Directory => {
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
                }
                _ => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        "not a regular file, which would be replaced by one; choose another name",
                    ));
                }
            }
        }
        Self::create_at(directory, name)
    }

    /// Creates a file whose temporary name is that of `path` followed by `suffix`, so that
    /// [`resume`](Self::resume) finds it. An existing file with the temporary name is removed.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn create_named(path: &Path, suffix: &str) -> io::Result<Self> {
        let Self { directory, name, .. } = &Self::create(path)?;
        let (directory, name, temporary) = (directory.try_clone()?, name.clone(), suffixed(name, suffix));
        match unlinkat(&directory, &temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let file = openat(&directory, &temporary, CREATE, PRIVATE)?.into();
        Ok(Self { file, directory, temporary, name, is_complete: false })
    }

    /// Opens a file created by [`create_named`](Self::create_named) and left by
    /// [`keep`](Self::keep).
    ///
    /// # Errors
    /// The file does not exist, or another user may have created it: its name is a link or one of
    /// several names, or the file belongs to another user or can be written by others.
    pub fn resume(path: &Path, suffix: &str) -> io::Result<Self> {
        let (directory, name) = parent(path)?;
        let temporary = suffixed(&name, suffix);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, &temporary, flags, Mode::empty())?;
        let stat = fstat(&file)?;
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let others = Mode::from_raw_mode(stat.st_mode) & (Mode::WGRP | Mode::WOTH);
        if !is_regular || stat.st_nlink != 1 || stat.st_uid != caller() || !others.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the incomplete file belongs to another user or is writable by others",
            ));
        }
        Ok(Self { file: file.into(), directory, temporary, name, is_complete: false })
    }

    /// Leaves the incomplete file under its temporary name.
    pub fn keep(mut self) {
        self.is_complete = true;
    }

    /// Creates a file in an open directory.
    pub(crate) fn create_at(directory: OwnedFd, name: OsString) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let mut temporary = OsString::from(".");
            temporary.push(&name);
            temporary.push(format!(".{:016x}", unique()));
            match openat(&directory, &temporary, CREATE, PRIVATE) {
                Ok(file) => {
                    return Ok(Self { file: file.into(), directory, temporary, name, is_complete: false });
                }
                Err(Errno::EXIST) => {}
                // The temporary name is longer than the name.
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Gives the file its final name, replacing an existing file or link. The link is not followed.
    ///
    /// # Errors
    /// The system call fails, for example because the name is now that of a directory. The file is
    /// removed.
    pub fn commit(mut self) -> io::Result<()> {
        renameat(&self.directory, &self.temporary, &self.directory, &self.name)?;
        self.is_complete = true;
        Ok(())
    }

    /// Returns the file, for reading.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file, for writing at any offset.
    pub fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

fn suffixed(name: &OsStr, suffix: &str) -> OsString {
    let mut temporary = name.to_owned();
    temporary.push(suffix);
    temporary
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = unlinkat(&self.directory, &self.temporary, AtFlags::empty());
        }
    }
}

/// The destination of a result: a new file, or a device, a pipe or an open descriptor, which is not
/// replaced.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// A file that appears when it is complete.
    New(NewFile),
    /// An existing object.
    Open(File),
}

impl Output {
    /// Opens the destination. Waits for the reader of a FIFO, as any program does.
    ///
    /// # Errors
    /// It cannot be created or written, or it is a FIFO that belongs to neither root nor the
    /// caller.
    pub fn open(path: &Path) -> io::Result<Self> {
        let Some(found) = special(path)? else { return NewFile::create(path).map(Self::New) };
        let descriptor = format!("/proc/self/fd/{}", found.fd.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(Self::Open(File::from(rustix::fs::open(descriptor, flags, Mode::empty())?)))
    }

    /// Finishes the output. A new file gets its final name.
    ///
    /// # Errors
    /// See [`NewFile::commit`].
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Self::New(file) => file.commit(),
            Self::Open(_) => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::New(file) => file.write(bytes),
            Self::Open(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::New(file) => file.flush(),
            Self::Open(file) => file.flush(),
        }
    }
}

/// Returns the object that a path names, if it is to be written rather than replaced.
fn special(path: &Path) -> io::Result<Option<Found>> {
    // `NewFile` replaces or rejects a path that cannot be resolved, such as a link of another user.
    let Ok(found) = resolve(path) else { return Ok(None) };
    let is_foreign = || {
        let is_anonymous = rustix::fs::fstatfs(&found.fd).is_ok_and(|fs| fs.f_type == PIPEFS_MAGIC);
        !is_anonymous && !is_trusted(&found.stat)
    };
    match found.kind() {
        FileType::RegularFile if !found.is_open => Ok(None),
        FileType::Directory => Ok(None),
        FileType::Fifo if is_foreign() => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("a FIFO of user {}; choose another name", found.stat.st_uid),
        )),
        _ => Ok(Some(found)),
    }
}

/// Writes a file, or writes to the existing object that the path names. See [`Output`].
///
/// # Errors
/// The file cannot be created or written. In that case no new file remains.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut output = Output::open(path)?;
    output.write_all(content)?;
    output.finish()
}

/// Opens a destination that others read while it is written: a new file gets its name at once.
///
/// # Errors
/// See [`Output::open`] and [`NewFile::commit`].
pub fn stream(path: &Path) -> io::Result<File> {
    match Output::open(path)? {
        Output::Open(file) => Ok(file),
        Output::New(new) => {
            let file = new.file().try_clone()?;
            new.commit()?;
            Ok(file)
        }
    }
}

/// Checks that [`Output::open`] will succeed, without changing anything.
///
/// # Errors
/// See [`Output::open`].
pub fn check(path: &Path) -> io::Result<()> {
    match special(path)? {
        Some(found) => {
            let descriptor = format!("/proc/self/fd/{}", found.fd.as_raw_fd());
            Ok(rustix::fs::access(descriptor, rustix::fs::Access::WRITE_OK)?)
        }
        None => NewFile::create(path).map(drop),
    }
}

/// Creates a file, for reading and writing, with mode 0600. It has its final name at once and is
/// never replaced, because it must be readable after a crash: a recording.
///
/// # Errors
/// The name exists, or the directory cannot be written.
pub fn create_new(path: &Path) -> io::Result<File> {
    let (directory, name) = parent(path)?;
    Ok(openat(&directory, &name, CREATE, PRIVATE)?.into())
}

/// Creates a temporary file without a name in this directory, for reading and writing. It
/// disappears when it is closed.
///
/// # Errors
/// The directory cannot be written.
pub fn unnamed(directory: &Path) -> io::Result<File> {
    let found = resolve(directory)?;
    match openat(&found.fd, c".", OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, PRIVATE) {
        Ok(file) => Ok(file.into()),
        // Some file systems need a temporary name.
        Err(_) => NewFile::create_at(found.fd, "unnamed".into())?.file.try_clone(),
    }
}

impl AsFd for NewFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
