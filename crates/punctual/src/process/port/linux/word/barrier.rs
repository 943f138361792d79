//! Kernel services for a [`BiasedWord`](super::BiasedWord): the current CPU of each thread, and the
//! abort of sequences.

use std::io::Error;

use punctual_sync::futex::selector::unwatched;

use super::NOWHERE;
use crate::port::linux::{self, stderr};

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ` of the kernel, since Linux 5.10, and its registration.
const ABORT: libc::c_int = 1 << 7;
const REGISTER: libc::c_int = 1 << 8;
/// `MEMBARRIER_CMD_FLAG_CPU`: only the sequences on one CPU.
const ON_CPU: libc::c_int = 1;

/// Prepares for words that are biased to `cpu`; if impossible, returns the reason.
pub(super) fn prepare(cpu: usize) -> Result<u32, String> {
    registered().ok_or("the C library has registered no restartable sequences with the kernel")?;
    let fits = u32::try_from(cpu).ok().filter(|&cpu| cpu < NOWHERE);
    let cpu = fits.ok_or_else(|| format!("CPU {cpu} is not below {NOWHERE}"))?;
    membarrier(REGISTER, 0, 0).and_then(|()| membarrier(ABORT, ON_CPU, cpu)).map_err(|error| {
        format!("the kernel does not abort restartable sequences ({error} from membarrier)")
    })?;
    Ok(cpu)
}

/// Returns the offset from the thread pointer of the records that the C library has registered. It
/// registers one in every thread or, without kernel support or if disabled
/// (`GLIBC_TUNABLES=glibc.pthread.rseq=0`), in none; in a thread for which the kernel refuses, the
/// record shows the failure.
pub(super) fn registered() -> Option<isize> {
    // SAFETY: the name is a C string. glibc has had the variable since version 2.35, never changes
    // it after its start, and no other library defines it.
    let size =
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<libc::c_uint>().as_ref() };
    records().filter(|_| size.is_some_and(|size| *size != 0))
}

/// Returns the offset of each thread's record from the thread pointer, even if no record is
/// registered with the kernel. `None` without support by the C library.
pub(super) fn records() -> Option<isize> {
    // SAFETY: as in `registered`.
    let offset =
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>().as_ref() };
    offset.copied()
}

/// Aborts the sequence in progress on `cpu`, if any. The calling thread sees everything that a
/// thread of the process has done there before, and everything that such a thread does later sees
/// what the calling thread did before.
///
/// Real-time safety: a system call, in which the thread may wait for others that make it.
pub(super) fn abort_sequences(cpu: u32) {
    // After a fork, or after restoring a checkpoint, the process may have to register again.
    let aborted = unwatched(|| {
        membarrier(ABORT, ON_CPU, cpu)
            .or_else(|_| membarrier(REGISTER, 0, 0).and_then(|()| membarrier(ABORT, ON_CPU, cpu)))
    });
    if let Err(error) = aborted {
        refused(&error);
    }
}

/// Ends the process: it can neither change the word soundly nor continue without it.
#[cold]
fn refused(error: &Error) -> ! {
    stderr::line(format_args!(
        "the kernel refuses membarrier, which it granted when the app was started: {error}; if a seccomp filter does, have it allow \
         the system call or start the app with PUNCTUAL_RSEQ=0; the process ends, since its threads cannot agree on what runs"
    ));
    linux::end_process(1)
}

/// Ends the process before the number of threads that change the word overflows.
#[cold]
pub(super) fn too_many_threads() -> ! {
    stderr::line(format_args!(
        "tens of thousands of threads spawn into one partition in the same instant; the process ends"
    ));
    linux::end_process(1)
}

fn membarrier(command: libc::c_int, flags: libc::c_int, cpu: u32) -> Result<(), Error> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}
