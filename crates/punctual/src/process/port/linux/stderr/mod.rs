//! Messages of the runtime on standard error: best effort, and nothing depends on them.
//!
//! Standard error may be a full disk, a pipe without a reader, or a full pipe. So nothing in here
//! panics, blocks for long or allocates, and no function reports success. Lost lines are counted,
//! and the next line that can be written reports their number.
//!
//! Ordinary threads [write](fn@line). A thread that runs jobs, or whose end the app waits for, must
//! not even enter the kernel for it: it [defers](defer) its lines to the supervisor, which
//! [writes](write_deferred) them.

mod deferred;

use std::fmt::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::port::linux::{self, FileKind};

pub(crate) use deferred::{defer, write_deferred};

/// `PIPE_BUF`: number of bytes that a pipe accepts atomically.
const CHUNK: usize = 4096;
/// Time that a line waits for a blocked standard error. Later lines do not wait at all.
const WRITE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

static LOST: AtomicU32 = AtomicU32::new(0);
/// True if the last write failed.
static LAST_WRITE_FAILED: AtomicBool = AtomicBool::new(false);

/// Writes a line with the name of the library as prefix. For ordinary threads.
pub(crate) fn line(line: fmt::Arguments<'_>) {
    text(format_args!("punctual: {line}\n"));
}

/// Writes `text`, which ends with a newline. For ordinary threads.
pub(crate) fn text(text: fmt::Arguments<'_>) {
    let mut chunks = Chunks { room: [0; CHUNK], length: 0, lost: LOST.swap(0, Ordering::Relaxed) };
    if chunks.lost > 0 {
        let lost = std::mem::take(&mut chunks.lost);
        let _ = writeln!(chunks, "punctual: lines that could not be written to standard error: {lost}");
        chunks.lost = lost;
    }
    // An argument whose `Display` fails is cut off there.
    let _ = chunks.write_fmt(text);
    chunks.flush();
    LOST.fetch_add(chunks.lost, Ordering::Relaxed);
}

/// Collects a text and writes it in chunks.
struct Chunks {
    room: [u8; CHUNK],
    length: usize,
    /// The number of lost lines that have not been reported.
    lost: u32,
}

impl Chunks {
    fn flush(&mut self) {
        let piece = &self.room[..std::mem::take(&mut self.length)];
        let left = write(piece);
        match left.iter().filter(|&&byte| byte == b'\n').count() {
            _ if left.is_empty() => self.lost = 0,
            lines => self.lost = self.lost.saturating_add(lines.max(1) as u32),
        }
    }
}

impl Write for Chunks {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while !text.is_empty() {
            let fits = fitting(text, CHUNK - self.length);
            let (now, later) = text.split_at(fits);
            self.room[self.length..self.length + fits].copy_from_slice(now.as_bytes());
            self.length += fits;
            text = later;
            if !text.is_empty() {
                self.flush();
            }
        }
        Ok(())
    }
}

/// Returns the number of bytes of `text` that fit into `room`, in whole characters.
fn fitting(text: &str, room: usize) -> usize {
    let most = text.len().min(room);
    (0..=most).rev().find(|&length| text.is_char_boundary(length)).unwrap_or(0)
}

/// Writes to standard error; returns the rest that it did not accept.
fn write(mut bytes: &[u8]) -> &[u8] {
    // SAFETY: nothing here depends on the descriptor's file; a closed descriptor is an error like
    // others.
    let stderr = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
    while !bytes.is_empty() {
        match write_some(stderr, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    LAST_WRITE_FAILED.store(!bytes.is_empty(), Ordering::Relaxed);
    bytes
}

fn write_some(stderr: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let timeout = if LAST_WRITE_FAILED.load(Ordering::Relaxed) { NO_WAIT } else { WRITE_TIMEOUT };
    let mut fds = [PollFd::from_borrowed_fd(stderr, PollFlags::OUT)];
    poll(&mut fds, Some(&timeout))?;
    // A pipe without a reader is always ready, and writing to it may raise SIGPIPE.
    if fds[0].revents() != PollFlags::OUT {
        return Err(Errno::AGAIN);
    }
    // The space may be gone again, because others write to the same pipe.
    let at_the_end = u64::MAX;
    match pwritev2(stderr, &[std::io::IoSlice::new(bytes)], at_the_end, ReadWriteFlags::NOWAIT) {
        // For a file it means waiting for the disk, for others that the kernel cannot determine it.
        Err(Errno::AGAIN) if linux::file_kind(stderr) != FileKind::Regular => Err(Errno::AGAIN),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            rustix::io::write(stderr, bytes)
        }
        Ok(0) => Err(Errno::IO),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_text_between_characters() {
        assert_eq!([0, 1, 2, 3, 4, 9].map(|room| fitting("aäb", room)), [0, 1, 1, 3, 4, 4]);
    }
}
