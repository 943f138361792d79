//! trace.dat files of version 7, of capture directories and of other traces.
//!
//! The example of [`write`](crate::write) shows it. Nothing is compressed: the pages are copied by the kernel from file to
//! file. The file appears under its name only when it is complete, and then replaces one that was there, behind a link if the name
//! is one. Nothing but a file is replaced.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::WriteError;
use super::content::{Content, Pages};
use super::directory::Directory;
use super::moving;
use super::sections::Plan;
use crate::read::{ReadError, dat};

/// Writes `file` from the capture directory `directory`, which stays as it is.
///
/// # Errors
/// If the directory has no recording or cannot be read, or the file cannot be written. The directory has the recording
/// still.
pub fn write(directory: &Path, file: &Path) -> Result<(), WriteError> {
    let content = Directory::new(directory).content()?;
    match moving::has_begun(&content) {
        true => Err(WriteError::Moved { directory: directory.to_owned() }),
        false => copy(&content, Some(directory), file),
    }
}

/// Writes `file` from the capture directory `directory` and removes that. If there is no room for both, the pages are moved
/// bit by bit: no more disk is needed than the recording has, and some MiB.
///
/// # Errors
/// As of [`write()`]. If some pages have been moved by then, the others are in the directory still; to call this again, with
/// the same file, goes on.
pub fn finish(directory: &Path, file: &Path) -> Result<(), WriteError> {
    let content = Directory::new(directory).content()?;
    let file = &*replaceable(file)?;
    let copied = match moving::has_begun(&content) {
        true => None,
        false => Some(copy(&content, Some(directory), file)),
    };
    match copied {
        None | Some(Err(WriteError::DiskFull { .. })) => moving::write(&content, directory, &part_name(file))
            .and_then(|()| rename(&part_name(file), file, Some(directory)))?,
        Some(result) => result?,
    }
    fs::remove_dir_all(directory).map_err(|error| WriteError::Left { path: directory.to_owned(), error })
}

/// Writes `file` from another trace.dat, of which only a part may be there. Returns what is to be known of that.
///
/// # Errors
/// If the trace cannot be read, not even in part, was recorded on a machine with the other order of bytes, or the file cannot
/// be written.
pub fn convert(trace: &Path, file: &Path) -> Result<Vec<String>, WriteError> {
    let (content, damage) =
        dat::content(trace).map_err(|error: ReadError| WriteError::Unreadable(error.into()))?;
    copy(&content, None, file)?;
    Ok(damage)
}

/// Writes the file, or nothing.
pub(crate) fn copy(content: &Content, directory: Option<&Path>, file: &Path) -> Result<(), WriteError> {
    let file = &*replaceable(file)?;
    let part = part_name(file);
    let result = copy_to(content, directory, &part).and_then(|()| rename(&part, file, directory));
    if result.is_err() {
        // It may have filled the disk, and has nothing that its source has not. That it cannot be removed would be the second
        // problem, and the first is the one to tell.
        let _ = fs::remove_file(&part);
    }
    result
}

/// Where the file is to be: where a link leads, so that the link stays.
fn replaceable(file: &Path) -> Result<Cow<'_, Path>, WriteError> {
    // Root may replace a device by a file, which others then take for the device.
    if fs::metadata(file).is_ok_and(|there| !there.is_file()) {
        let error = io::Error::new(ErrorKind::InvalidInput, "this is no file, and would be replaced by one");
        return Err(WriteError::output(file, None, error));
    }
    let is_link = fs::symlink_metadata(file).is_ok_and(|there| there.is_symlink());
    let target = is_link.then(|| fs::canonicalize(file).ok()).flatten();
    Ok(target.map_or(Cow::Borrowed(file), Cow::Owned))
}

fn rename(part: &Path, file: &Path, kept: Option<&Path>) -> Result<(), WriteError> {
    fs::rename(part, file).map_err(|error| WriteError::output(file, kept, error))
}

fn part_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn copy_to(content: &Content, kept: Option<&Path>, part: &Path) -> Result<(), WriteError> {
    let failed = |error| WriteError::output(part, kept, error);
    let plan = Plan::new(content);
    let mut out = File::create(part).map_err(failed)?;
    out.write_all(&plan.head).map_err(failed)?;
    for (buffer, places) in content.buffers.iter().zip(&plan.buffers) {
        out.seek(SeekFrom::Start(places.at)).map_err(failed)?;
        out.write_all(&places.head).map_err(failed)?;
        for ((_, pages), &(start, length)) in buffer.cpus.iter().zip(&places.cpus) {
            out.seek(SeekFrom::Start(start)).map_err(failed)?;
            copy_pages(pages, length, &mut out, failed)?;
        }
    }
    Ok(())
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
