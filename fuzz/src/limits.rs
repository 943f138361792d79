//! What a process may do, and that of another user.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

/// How much CPU time a real-time thread may take without blocking, in µs: the first sends SIGXCPU, the second SIGKILL.
const RUNAWAY: (u64, u64) = (2_000_000, 3_000_000);

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call takes no pointers and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Makes the kernel end the process that `command` becomes if a real-time thread of it runs away.
pub(crate) fn no_runaways(command: &mut Command) {
    limit(command, libc::RLIMIT_RTTIME, RUNAWAY.0, RUNAWAY.1);
    limit(command, libc::RLIMIT_CORE, 0, 0);
}

/// Takes every privilege from the process that `command` becomes: it is root's.
pub(crate) fn no_privileges(command: &mut Command) {
    command.uid(NOBODY).gid(NOBODY);
    limit(command, libc::RLIMIT_RTPRIO, 0, 0);
    limit(command, libc::RLIMIT_MEMLOCK, 0, 0);
}

/// Starts a process that comes before others, as far as this one may: what it starts does so, too.
pub(crate) fn before_others<R>(start: impl FnOnce() -> R) -> R {
    const FIRST: i32 = -20;
    // SAFETY: neither call takes pointers; what cannot be changed stays.
    let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: as above.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) };
    let started = start();
    // SAFETY: as above.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, before) };
    started
}

fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, soft: u64, hard: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    let set = move || {
        // SAFETY: `limit` is a valid `rlimit`.
        match unsafe { libc::setrlimit(resource, &limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes a system call and nothing else.
    unsafe { command.pre_exec(set) };
}
