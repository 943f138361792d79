//! What Linux provides: the clock, futexes, CPUs, scheduling policies, locked memory, event sources.

pub(crate) mod clock;
pub(crate) mod counter;
pub(crate) mod cpu;
pub(crate) mod futex;
pub(crate) mod idle_states;
pub(crate) mod interference;
pub(crate) mod memory;
pub(crate) mod notice;
pub(crate) mod polling;
pub(crate) mod settings;
pub(crate) mod stack;
pub(crate) mod starvation;
pub(crate) mod stderr;
pub(crate) mod suspension;
pub(crate) mod trace_marker;
pub(crate) mod tsc;

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

static HELPER_CPUS: Mutex<Option<cpu::Allowed>> = Mutex::new(None);

/// The CPUs of background threads while an app runs; `None` leaves them where they are.
pub(crate) fn background_cpus() -> Option<cpu::Allowed> {
    HELPER_CPUS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Keeps background threads on `cpus` from now on.
pub(crate) fn set_background_cpus(cpus: Option<cpu::Allowed>) {
    *HELPER_CPUS.lock().unwrap_or_else(PoisonError::into_inner) = cpus;
}

/// The kernel's release, and whether it says that it is PREEMPT_RT.
pub(crate) fn kernel() -> String {
    let uname = rustix::system::uname();
    let version = uname.version().to_string_lossy();
    // Distributions' real-time kernels have the file; a plain mainline one only says so in its version.
    let real_time = std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1")
        || version.contains("PREEMPT_RT");
    let kind = if real_time { "PREEMPT_RT" } else { "not PREEMPT_RT" };
    format!("Linux {}, {kind}", uname.release().to_string_lossy())
}

/// The caller's TID.
pub(crate) fn kernel_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Whether `fd` is of a regular file.
pub(crate) fn is_file(fd: BorrowedFd<'_>) -> bool {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is a valid place for what the kernel says, and all-zero is a valid value besides.
    let status = unsafe {
        libc::fstat(fd.as_raw_fd(), status.as_mut_ptr());
        status.assume_init()
    };
    status.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Ends the process while threads may hold any lock. So it skips everything that an orderly exit does: C and C++
/// destructors and the flushing of streams wait for locks.
pub(crate) fn end_process(code: i32) -> ! {
    // SAFETY: the call takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends the process in good order, unless that waits for a lock that a thread still holds: then without.
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
