//! What is said when nothing may be relied on any more: by a signal handler, by the child of a `fork`, under a job that
//! does not end.
//!
//! No lock is taken, since whoever has it may never let go of it, and nothing is allocated; so it may be called in a signal
//! handler. What does not fit is cut off. A standard error that takes nothing, such as a pipe that nobody reads, is given
//! up after a second.

use std::fmt;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Fits into a pipe in one piece (`PIPE_BUF`), so that what is said is not mixed with what others say.
const LONGEST: usize = 2048;
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A text in memory of its own.
pub(crate) struct Words {
    text: [u8; LONGEST],
    length: usize,
}

impl Words {
    pub(crate) const fn new() -> Self {
        Self { text: [0; LONGEST], length: 0 }
    }

    /// Writes it to standard error.
    pub(crate) fn say(&self) {
        // SAFETY: nothing here depends on what the descriptor stands for; that it may be closed is an error like others.
        let stderr = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
        let mut left = &self.text[..self.length];
        while !left.is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(stderr, PollFlags::OUT)];
            match poll(&mut fds, Some(&PATIENCE)) {
                Err(Errno::INTR) => continue,
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            match rustix::io::write(stderr, left) {
                Ok(written) => left = &left[written..],
                Err(Errno::INTR) => {}
                // There is nobody to tell.
                Err(_) => return,
            }
        }
    }
}

impl fmt::Write for Words {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = &mut self.text[self.length..];
        let length = more.len().min(room.len());
        room[..length].copy_from_slice(&more.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

/// Says one line.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let mut words = Words::new();
    // It is cut off rather than refused.
    let _ = fmt::write(&mut words, format_args!("punctual: {line}\n"));
    words.say();
}

/// Ends the process under threads that may hold anything. So nothing of what a process does on an orderly exit is done:
/// destructors of C and C++ and the flushing of their streams wait for locks.
pub(crate) fn end_process(code: i32) -> ! {
    // SAFETY: the call takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut words = Words::new();
        for _ in 0..1000 {
            fmt::write(&mut words, format_args!("{} ", 1234)).expect("it never fails");
        }
        assert_eq!(words.length, LONGEST);
        assert!(words.text.starts_with(b"1234 1234 "));
    }
}
