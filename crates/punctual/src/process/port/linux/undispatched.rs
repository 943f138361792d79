//! Stub for processors on which the kernel cannot dispatch the system calls of a thread.

use std::io;

/// A system call that a thread is about to make.
pub(crate) struct Call {
    /// System call number.
    pub(crate) number: i64,
    pub(crate) arguments: [usize; 6],
    /// Return address.
    pub(crate) place: usize,
}

/// Dispatches system calls of the thread; never constructed on this target.
#[derive(Debug)]
pub(crate) struct Dispatched;

impl Dispatched {
    pub(crate) fn begin(_: fn(&Call)) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "Linux has Syscall User Dispatch on x86-64 only"))
    }
}
