//! Services of Linux: the clock, futexes, CPUs, scheduling policies, locked memory, event sources.

pub(crate) mod blocking;
pub(crate) mod clock;
pub(crate) mod counter;
pub(crate) mod cpu;
#[cfg(target_arch = "x86_64")]
pub(crate) mod dispatch;
/// Stub for processors on which the kernel cannot dispatch the system calls of a thread.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) mod dispatch {
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
}
pub(crate) mod fatal_signal;
pub(crate) mod futex;
pub(crate) mod idle_states;
pub(crate) mod inherited;
pub(crate) mod interference;
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod notice;
pub(crate) mod polled;
pub(crate) mod polling;
pub(crate) mod settings;
pub(crate) mod spin;
pub(crate) mod stack;
pub(crate) mod starvation;
pub(crate) mod stderr;
pub(crate) mod suspension;
pub(crate) mod trace_marker;
pub(crate) mod tsc;
mod valgrind;
#[cfg(all(target_arch = "x86_64", target_env = "gnu", target_pointer_width = "64", not(thread_sanitizer)))]
pub(crate) mod word;
/// Stub for targets without restartable sequences: the word of a partition is an atomic.
#[cfg(not(all(
    target_arch = "x86_64",
    target_env = "gnu",
    target_pointer_width = "64",
    not(thread_sanitizer)
)))]
pub(crate) mod word {
    use std::sync::atomic::AtomicU64;

    /// Cell of a partition's word on this target.
    pub(crate) type PartitionWord = AtomicU64;

    /// See the function in the other implementation of this module.
    ///
    /// # Safety
    /// No requirements.
    pub(crate) unsafe fn allow(_: &PartitionWord) {}

    /// See the function in the other implementation of this module.
    pub(crate) fn begin(_: &PartitionWord, cpu: Option<usize>) -> Result<(), String> {
        match cpu {
            Some(_) => Err("there are no restartable sequences for this target".to_owned()),
            None => Ok(()),
        }
    }

    /// See the function in the other implementation of this module.
    ///
    /// # Safety
    /// No requirements.
    #[cfg(punctual_counted)]
    pub(crate) unsafe fn bias_for_counting(_: &PartitionWord) {}

    /// See the function in the other implementation of this module.
    pub(crate) fn set_flagged(_: &PartitionWord) {}

    /// See the function in the other implementation of this module.
    pub(crate) fn clear_flagged(_: &PartitionWord) {}

    /// See the function in the other implementation of this module.
    pub(crate) fn forget_sequence(_: &PartitionWord) {}

    /// See the function in the other implementation of this module.
    pub(crate) fn bias(_: &PartitionWord) {}
}

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use punctual_process::kernel::Kernel;

static BACKGROUND_CPUS: Mutex<Option<cpu::Allowed>> = Mutex::new(None);

/// CPUs of background threads while an app runs; `None` does not restrict them.
pub(crate) fn background_cpus() -> Option<cpu::Allowed> {
    BACKGROUND_CPUS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Restricts background threads to `cpus` from now on.
pub(crate) fn set_background_cpus(cpus: Option<cpu::Allowed>) {
    *BACKGROUND_CPUS.lock().unwrap_or_else(PoisonError::into_inner) = cpus;
}

/// Returns the kernel's release, and whether it is PREEMPT_RT.
pub(crate) fn kernel() -> String {
    let Kernel { release, version, .. } = Kernel::running();
    // Distributions' real-time kernels have the file; a plain mainline one only has the version
    // string.
    let real_time = std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1")
        || version.contains("PREEMPT_RT");
    let kind = if real_time { "PREEMPT_RT" } else { "not PREEMPT_RT" };
    format!("Linux {release}, {kind}")
}

/// Longest resolution of high-resolution timers, in ns; the tick takes at least 1 ms.
const FINE_RESOLUTION_NS: i64 = 1_000;

/// Returns a note for the report if kernel timers expire with the tick only.
pub(crate) fn coarse_timers() -> Option<String> {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    note_of_resolution(resolution.tv_sec.saturating_mul(1_000_000_000).saturating_add(resolution.tv_nsec))
}

fn note_of_resolution(ns: i64) -> Option<String> {
    (ns > FINE_RESOLUTION_NS).then(|| {
        format!(
            "high-resolution timers are off, so releases by the clock are up to {} µs late: boot without highres=off, and \
             with a kernel with CONFIG_HIGH_RES_TIMERS",
            ns / 1_000
        )
    })
}

/// Returns the caller's TID.
pub(crate) fn kernel_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Kind of a file, with respect to detecting its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FileKind {
    /// A regular file: always readable, also at its end.
    Regular,
    /// The null device or a directory: always readable, and always at its end.
    Empty,
    /// Any file that reports readability by `poll`.
    Other,
}

/// Returns the kind of `fd`.
pub(crate) fn file_kind(fd: BorrowedFd<'_>) -> FileKind {
    /// `/dev/null`, see `Documentation/admin-guide/devices.txt` of the kernel.
    const NULL: libc::dev_t = libc::makedev(1, 3);
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is valid for the kernel's write, and all-zero is a valid value.
    let status = unsafe {
        libc::fstat(fd.as_raw_fd(), status.as_mut_ptr());
        status.assume_init()
    };
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => FileKind::Regular,
        libc::S_IFDIR => FileKind::Empty,
        libc::S_IFCHR if status.st_rdev == NULL => FileKind::Empty,
        _ => FileKind::Other,
    }
}

/// Ends the process while threads may hold any lock. It skips the steps of an orderly exit: C and
/// C++ destructors and the flushing of streams wait for locks.
pub(crate) fn end_process(code: i32) -> ! {
    // SAFETY: the call takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends the process in good order; if this waits for a lock that a thread still holds, ends it
/// without.
pub(crate) fn exit_process(code: i32) -> ! {
    const EXIT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
    let ended = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(EXIT_TIMEOUT);
        end_process(code)
    });
    match ended {
        Ok(_) => std::process::exit(code),
        Err(_) => end_process(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_timers_that_expire_with_the_tick() {
        assert_eq!(note_of_resolution(1), None);
        let note = note_of_resolution(4_000_000).unwrap();
        assert!(note.contains("up to 4000 µs late: boot without highres=off"), "{note}");
    }
}
