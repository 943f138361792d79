//! Polling partitions: one thread that never sleeps and never enters the kernel.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod no_system_calls;
mod order;
mod work;

/// Returns whether there are two CPUs to run on. Prints a notice if not.
fn two_cpus() -> bool {
    let enough = rustix::thread::sched_getaffinity(None).is_ok_and(|cpus| cpus.count() > 1);
    if !enough {
        test_skip::skip(test_skip::Need::TwoCpus, "a polling partition");
    }
    enough
}

/// Returns how often a thread has slept, given its `status` in `/proc`.
pub(crate) fn voluntary_switches(status: &str) -> u64 {
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("the kernel counts switches")
}

/// Returns virtual time, and threads if there are enough CPUs.
fn both() -> impl Iterator<Item = punctual::Config> {
    let virtual_time = punctual::Config::new().virtual_time();
    std::iter::once(virtual_time).chain(two_cpus().then(punctual::Config::new))
}

/// Observes every system call of one thread, by a seccomp filter that reports each to user space.
///
/// The thread waits in the kernel until its call is answered, so none is missed. Only the end of
/// the thread removes the filter.
mod witness {
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use std::thread::JoinHandle;

    use rustix::event::{PollFd, PollFlags, poll};

    /// The filter's descriptor, stored without a system call by the thread that has installed the
    /// filter on itself.
    static LISTENER: AtomicI32 = AtomicI32::new(NONE);
    /// True while calls are recorded; before and after they are only answered.
    static WATCHING: AtomicBool = AtomicBool::new(false);

    const NONE: i32 = -1;
    /// The kernel lacks such filters, or forbids them.
    const REFUSED: i32 = -2;

    /// Installs the filter on the calling thread. Its calls are recorded from here on.
    pub(crate) fn watch_me() {
        WATCHING.store(true, Ordering::SeqCst);
        LISTENER.store(install().unwrap_or(REFUSED), Ordering::SeqCst);
    }

    /// Stops recording calls.
    pub(crate) fn look_away() {
        WATCHING.store(false, Ordering::SeqCst);
    }

    fn install() -> Option<i32> {
        let everything = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF };
        let program = libc::sock_fprog { len: 1, filter: (&raw const everything).cast_mut() };
        // SAFETY: the program is one valid instruction, "return", and lives for the call. The
        // filter only makes the thread's calls wait for an answer.
        let listener = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        i32::try_from(listener).ok().filter(|&fd| fd >= 0)
    }

    /// Starts the thread that answers; it returns the numbers of the recorded calls, or `None` if
    /// there can be no such filter.
    pub(crate) fn start() -> JoinHandle<Option<Vec<i32>>> {
        LISTENER.store(NONE, Ordering::SeqCst);
        std::thread::spawn(|| {
            let listener = loop {
                match LISTENER.load(Ordering::SeqCst) {
                    NONE => std::thread::yield_now(),
                    REFUSED => return None,
                    // SAFETY: the thread that stored it has passed its ownership to this one.
                    fd => break unsafe { OwnedFd::from_raw_fd(fd) },
                }
            };
            let mut seen = Vec::new();
            while let Some(number) = next(&listener) {
                if WATCHING.load(Ordering::SeqCst) {
                    seen.push(number);
                }
            }
            Some(seen)
        })
    }

    /// Continues the next call and returns its number; `None` after the thread has ended.
    fn next(listener: &OwnedFd) -> Option<i32> {
        // _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp)
        const RECEIVE: libc::c_ulong = 0xc050_2100;
        const SEND: libc::c_ulong = 0xc018_2101;
        loop {
            let mut fds = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
            let _ = poll(&mut fds, None);
            if !fds[0].revents().contains(PollFlags::IN) {
                return None;
            }
            // SAFETY: all-zero is a valid value, which the kernel requires.
            let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            // SAFETY: the request matches the type, and the destination is valid.
            if unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut call) } != 0 {
                continue;
            }
            let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags };
            // SAFETY: as above.
            unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw mut answer) };
            return Some(call.data.nr);
        }
    }
}
