//! The thread of a polling partition: it never enters the kernel, from its first job until the app
//! stops.
//!
//! So signals must not interrupt it, it needs a clock that can be read in user space, and it
//! occupies a CPU that should be reserved for it.

use std::cell::Cell;
use std::fs;

use super::cpu;
use super::tsc::Tsc;

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the calling thread is a polling thread.
#[inline]
pub(crate) fn is_mine() -> bool {
    MINE.get()
}

/// Runs `f` as a polling thread, which the calling thread becomes, without signals.
pub(crate) fn as_mine(f: impl FnOnce()) {
    block_signals();
    MINE.set(true);
    f();
    MINE.set(false);
}

/// Leaves signals to the other threads of the process.
fn block_signals() {
    // SAFETY: the set is valid for writes, and is filled before it is used.
    unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        // Faults of the thread itself, such as a stack overflow. If they were blocked, the kernel
        // would kill the process silently. The guard uses SIGSYS.
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        for own in faults.into_iter().chain([libc::SIGABRT, libc::SIGSYS]) {
            libc::sigdelset(all.as_mut_ptr(), own);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Returns the settings that a polling thread on `cpus` lacks, each with the remedy.
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
        // Clock sources that the vDSO reads without a system call.
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
