//! Moves a capture directory into a trace.dat if there is no room for both.
//!
//! The pages are copied step by step, and after each step is on the disk, its space in the
//! directory is freed: holes appear in its files, which keep their lengths. So at any time each
//! page is in one of the two, and the holes record the progress for any later continuation.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use punctual_files::NewFile;
use rustix::fs::{FallocateFlags, SeekFrom as Find, fallocate, seek};
use rustix::io::Errno;

use super::WriteError;
use super::sections::Plan;
use crate::format::dat::{Content, Pages};

/// Size of a step, which is the extra room that the move needs.
const STEP: u64 = 4 << 20;

/// Suffix of the temporary name of a file into which pages are moved.
const SUFFIX: &str = ".part";

/// Returns whether some of the pages have been moved.
pub(super) fn has_begun(content: &Content) -> bool {
    content.buffers.iter().flat_map(|buffer| &buffer.cpus).any(|(_, pages)| match pages {
        Pages::File(file, _, length) if *length > 0 => {
            seek(file, Find::Hole(0)).is_ok_and(|hole| hole < *length)
        }
        _ => false,
    })
}

/// Moves the pages of `directory` to `file`, or resumes the move.
pub(super) fn write(content: &Content, directory: &Path, file: &Path) -> Result<(), WriteError> {
    let failed = |error| WriteError::output(file, Some(directory), error);
    let plan = Plan::new(content);
    let mut out = if has_begun(content) {
        let resumed = NewFile::resume(file, SUFFIX).ok().filter(|part| begins_with(part, &plan.head));
        resumed.ok_or_else(|| WriteError::Moved { directory: directory.to_owned() })?
    } else {
        NewFile::create_named(file, SUFFIX).map_err(failed)?
    };
    match move_all(content, &plan, out.file_mut(), &failed) {
        Ok(()) => out.commit().map_err(failed),
        Err(error) => {
            if has_begun(content) {
                out.keep();
            }
            Err(error)
        }
    }
}

fn move_all(
    content: &Content,
    plan: &Plan,
    out: &mut File,
    failed: &impl Fn(io::Error) -> WriteError,
) -> Result<(), WriteError> {
    out.write_all_at(&plan.head, 0).map_err(failed)?;
    for (buffer, positions) in content.buffers.iter().zip(&plan.buffers) {
        out.write_all_at(&positions.head, positions.at).map_err(failed)?;
        for ((_, pages), &(start, length)) in buffer.cpus.iter().zip(&positions.cpus) {
            let Pages::File(from, path, _) = pages else { continue };
            let unread = |error| WriteError::Source { path: path.clone(), error };
            let mut from = from;
            let mut at = 0;
            while at < length {
                // Pages already moved are a hole.
                at = match seek(from, Find::Data(at)) {
                    Ok(data) => data / STEP * STEP,
                    Err(Errno::NXIO) => break,
                    Err(error) => return Err(unread(error.into())),
                };
                let count = STEP.min(length.saturating_sub(at));
                from.seek(SeekFrom::Start(at)).map_err(unread)?;
                out.seek(SeekFrom::Start(start + at)).map_err(failed)?;
                if io::copy(&mut from.take(count), out).map_err(failed)? != count {
                    return Err(unread(io::ErrorKind::UnexpectedEof.into()));
                }
                out.sync_data().map_err(failed)?;
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                match fallocate(from, punch, at, count) {
                    // On file systems without holes, the disk may fill up, but no data is lost.
                    Ok(()) | Err(Errno::OPNOTSUPP) => {}
                    Err(error) => return Err(unread(error.into())),
                }
                at += count;
            }
        }
    }
    Ok(())
}

fn begins_with(part: &NewFile, head: &[u8]) -> bool {
    let mut found = vec![0; head.len()];
    part.file().read_exact_at(&mut found, 0).is_ok() && found == head
}
