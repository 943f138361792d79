//! Allocation of the memory of a file before it is mapped.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// The number of attempts before [`allocate`] fails because of signals.
const MAX_ATTEMPTS: u32 = 100;

/// Allocates the first `length` bytes of a file: a lack of memory or disk space is an error here,
/// rather than SIGBUS at an access to the mapped file.
///
/// On tmpfs, and so in a memfd, older kernels undo an allocation when a signal arrives, even one
/// that the process handles. This function then repeats it.
///
/// # Errors
/// The file system lacks the space, or cannot allocate it in advance. `Interrupted` if signals
/// interrupt all of 100 attempts, because they arrive faster than the kernel allocates.
pub fn allocate(file: impl AsFd, length: u64) -> io::Result<()> {
    Ok(repeat(|| fallocate(&file, FallocateFlags::empty(), 0, length))?)
}

fn repeat(mut attempt: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    for _ in 1..MAX_ATTEMPTS {
        match attempt() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result and the number of attempts. Signals interrupt the first `times`, and the
    /// next one returns `end`.
    fn interrupted(times: u32, end: rustix::io::Result<()>) -> (rustix::io::Result<()>, u32) {
        let mut attempts = 0;
        let result = repeat(|| {
            attempts += 1;
            if attempts > times { end } else { Err(Errno::INTR) }
        });
        (result, attempts)
    }

    #[test]
    fn repeats_interrupted_allocation_within_limit() {
        assert_eq!(interrupted(0, Ok(())), (Ok(()), 1));
        assert_eq!(interrupted(2, Ok(())), (Ok(()), 3));
        assert_eq!(interrupted(2, Err(Errno::NOSPC)), (Err(Errno::NOSPC), 3));
        assert_eq!(interrupted(MAX_ATTEMPTS - 1, Ok(())), (Ok(()), MAX_ATTEMPTS));
        assert_eq!(interrupted(MAX_ATTEMPTS, Ok(())), (Err(Errno::INTR), MAX_ATTEMPTS));
    }

    #[test]
    fn extends_empty_file() {
        let file = crate::unnamed(&std::env::temp_dir()).unwrap();
        allocate(&file, 5000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 5000);
    }
}
