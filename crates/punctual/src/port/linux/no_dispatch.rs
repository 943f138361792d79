//! Processors on which the kernel does not hand the system calls of a thread to itself.

use std::io;

/// A system call that a thread is about to make.
pub(crate) struct Call {
    /// Its number.
    pub(crate) number: i64,
    pub(crate) arguments: [usize; 6],
    /// The return address.
    pub(crate) place: usize,
}

/// System calls of the thread are dispatched, which never is the case here.
#[derive(Debug)]
pub(crate) struct Dispatched;

impl Dispatched {
    pub(crate) fn begin(_: fn(&Call)) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "Linux has Syscall User Dispatch on x86-64 only"))
    }
}
