//! Writes trace.dat files of version 7 from capture directories and other traces.
//!
//! See the example of [`write`](crate::write). Nothing is compressed: the kernel copies the pages
//! from file to file. The file appears under its name only when it is complete, with mode 0600, and
//! then replaces an existing file or link with that name, but nothing else.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use punctual_files::{Directory, NewFile};

use super::WriteError;
use super::directory::Capture;
use super::moving;
use super::sections::Plan;
use crate::format::dat::{Content, Pages};

/// Writes `file` from the capture directory `directory`, which remains unchanged.
///
/// # Errors
/// Returns an error if the directory has no recording or cannot be read, or if the file cannot be
/// written. The directory keeps the recording.
pub fn write(directory: &Path, file: &Path) -> Result<(), WriteError> {
    let opened = Directory::open_foreign(directory)
        .map_err(|error| WriteError::Source { path: directory.to_owned(), error })?;
    let content = Capture::new(&opened, false).content()?;
    match moving::has_begun(&content) {
        true => Err(WriteError::Moved { directory: directory.to_owned() }),
        false => copy(&content, Some(directory), file),
    }
}

/// Writes `file` from the capture directory `directory` and removes the directory. If there is no
/// room for both, moves the pages step by step: this needs only some MiB in addition to the
/// recording.
///
/// # Errors
/// Returns the errors of [`write()`], and an error if the directory belongs to another user or is
/// writable by others. If some pages have been moved by then, the others are still in the
/// directory; calling this again with the same file resumes the move.
pub fn finish(directory: &Path, file: &Path) -> Result<(), WriteError> {
    let opened = Directory::open(directory)
        .map_err(|error| WriteError::Source { path: directory.to_owned(), error })?;
    let content = Capture::new(&opened, true).content()?;
    let copied = match moving::has_begun(&content) {
        true => None,
        false => Some(copy(&content, Some(directory), file)),
    };
    match copied {
        None | Some(Err(WriteError::DiskFull { .. })) => moving::write(&content, directory, file)?,
        Some(result) => result?,
    }
    opened.remove().map_err(|error| WriteError::Left { path: directory.to_owned(), error })
}

/// Writes the complete file, or nothing.
pub(crate) fn copy(content: &Content, saved: Option<&Path>, file: &Path) -> Result<(), WriteError> {
    let failed = |error| WriteError::output(file, saved, error);
    let plan = Plan::new(content);
    let mut new = NewFile::create(file).map_err(failed)?;
    let out = new.file_mut();
    out.write_all(&plan.head).map_err(failed)?;
    for (buffer, positions) in content.buffers.iter().zip(&plan.buffers) {
        out.seek(SeekFrom::Start(positions.at)).map_err(failed)?;
        out.write_all(&positions.head).map_err(failed)?;
        for ((_, pages), &(start, length)) in buffer.cpus.iter().zip(&positions.cpus) {
            out.seek(SeekFrom::Start(start)).map_err(failed)?;
            copy_pages(pages, length, out, failed)?;
        }
    }
    new.commit().map_err(failed)
}

fn copy_pages(
    pages: &Pages,
    length: u64,
    out: &mut File,
    failed: impl Fn(io::Error) -> WriteError,
) -> Result<(), WriteError> {
    let copied = pages.copy(length, out).map_err(failed)?;
    match copied == length {
        true => Ok(()),
        false => Err(WriteError::Source { path: pages.path(), error: ErrorKind::UnexpectedEof.into() }),
    }
}
