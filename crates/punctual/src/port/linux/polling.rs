//! The thread of a partition that polls: it never enters the kernel, from its first job until the app stops.
//!
//! So it must not be interrupted by signals either, needs a clock that is read in user space, and keeps a CPU busy that
//! should be kept free of everybody else.

use std::cell::Cell;
use std::fs;

use super::cpu;
use super::tsc::Tsc;

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is such a thread.
#[inline]
pub(crate) fn is_mine() -> bool {
    MINE.get()
}

/// Runs `f` as such a thread, which the calling thread is from now on, without signals.
pub(crate) fn as_mine(f: impl FnOnce()) {
    block_signals();
    MINE.set(true);
    f();
    MINE.set(false);
}

/// Leaves signals to the other threads of the process.
fn block_signals() {
    // SAFETY: the set is a valid place for one, and is filled before it is used.
    unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        // Faults of the thread itself, such as a stack overflow. If they are blocked, the kernel kills the process silently.
        // SIGSYS is the guard's.
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        for own in faults.into_iter().chain([libc::SIGABRT, libc::SIGSYS]) {
            libc::sigdelset(all.as_mut_ptr(), own);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// The settings that a polling thread on `cpus` lacks, each with the fix.
pub(crate) fn missing(cpus: &str) -> Vec<String> {
    let mut missing = Vec::new();
    if !cpus.parse().is_ok_and(|cpu| cpu::isolated().contains(&cpu)) {
        missing.push(format!(
            "CPU {cpus} is not isolated, so other threads take turns with this one; boot with isolcpus={cpus} \
             nohz_full={cpus}, or make it an isolated cpuset partition together with a CPU for the app's other threads, and start \
             the app in that"
        ));
    }
    if !Tsc::is_there() {
        let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let source = source.unwrap_or_default();
        // Those that the vDSO reads without a system call.
        let in_user_space = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
        if !in_user_space.contains(&source.trim()) {
            missing.push(format!(
                "the clock source {} is read in the kernel; choose one of {} (clocksource=…)",
                source.trim(),
                in_user_space.join(", ")
            ));
        }
    }
    missing
}
