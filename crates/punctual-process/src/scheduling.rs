//! Scheduling policies of threads, by direct system calls.
//!
//! In musl, `sched_setscheduler`, `pthread_setschedparam` and related functions return `ENOSYS`,
//! because POSIX defines them for processes and Linux applies them to threads. The system calls
//! themselves work with every C library.

use std::io;

use rustix::thread::{CapabilitySet, capabilities};

/// Policy and parameters of a thread.
#[derive(Clone, Copy)]
pub struct Scheduling(libc::sched_attr);

impl Scheduling {
    /// Reads the policy of the calling thread.
    ///
    /// # Errors
    /// The kernel refuses the system call.
    pub fn current() -> io::Result<Self> {
        Self::of(0)
    }

    /// Reads the policy of a thread; 0 is the calling thread.
    ///
    /// # Errors
    /// The thread does not exist, or the kernel refuses the system call.
    pub fn of(thread: i32) -> io::Result<Self> {
        // SAFETY: all members are integers, for which zero is a valid value.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the kernel writes at most `size` bytes to `attributes`, which has that size.
        match unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size, 0) } {
            0 => Ok(Self(attributes)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the policy, such as `libc::SCHED_FIFO`, without flags.
    #[must_use]
    pub fn policy(&self) -> i32 {
        self.0.sched_policy as i32
    }

    /// Returns the name of the policy, such as `SCHED_FIFO`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.policy() {
            libc::SCHED_OTHER => "SCHED_OTHER",
            libc::SCHED_FIFO => "SCHED_FIFO",
            libc::SCHED_RR => "SCHED_RR",
            libc::SCHED_BATCH => "SCHED_BATCH",
            libc::SCHED_IDLE => "SCHED_IDLE",
            libc::SCHED_DEADLINE => "SCHED_DEADLINE",
            _ => "an unknown policy",
        }
    }

    /// Returns the real-time priority; 0 for policies other than `SCHED_FIFO` and `SCHED_RR`.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.0.sched_priority as i32
    }

    /// Returns the thread's reservation under `SCHED_DEADLINE`.
    #[must_use]
    pub fn reservation(&self) -> Option<Reservation> {
        let libc::sched_attr { sched_runtime, sched_deadline, sched_period, .. } = self.0;
        let reserves = self.policy() == libc::SCHED_DEADLINE && sched_runtime > 0;
        reserves.then_some(Reservation {
            runtime: sched_runtime,
            deadline: sched_deadline,
            period: sched_period,
        })
    }

    /// Returns `true` for `SCHED_FIFO`, `SCHED_RR` and `SCHED_DEADLINE`: an ordinary thread cannot
    /// preempt the thread.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy(), libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }

    /// Applies this policy to the calling thread. The nice value is unchanged unless the policy is
    /// `SCHED_DEADLINE`.
    ///
    /// # Errors
    /// The kernel refuses the policy.
    pub fn apply(&self) -> io::Result<()> {
        if self.policy() != libc::SCHED_DEADLINE {
            let flag = match self.0.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 {
                0 => 0,
                _ => libc::SCHED_RESET_ON_FORK,
            };
            return set_policy(self.policy() | flag, self.priority());
        }
        // SAFETY: the kernel reads `size` bytes, which are within the structure.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const self.0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Calls `reap`, which waits for a process or thread that has ended, without a real-time policy.
///
/// The kernel then removes the entries of the process from the cache of `/proc`, and repeats until
/// no other thread uses them. On the CPU of a real-time thread, an ordinary reader of `/proc` would
/// never finish, and the system call never return.
///
/// The policy of the calling thread is restored afterwards, if the kernel permits it.
pub fn without_real_time<T>(reap: impl FnOnce() -> T) -> T {
    let policy = Scheduling::current().ok().filter(Scheduling::is_real_time);
    let is_lowered = policy.filter(|_| set_policy(libc::SCHED_OTHER, 0).is_ok());
    let result = reap();
    if let Some(policy) = is_lowered {
        let _ = policy.apply();
    }
    result
}

/// Describes why the kernel refused a real-time policy to the calling thread, with the remedy.
#[must_use]
pub fn explain_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => refused_by(may_schedule()).into(),
        _ => error.to_string(),
    }
}

/// Describes why `EPERM` was returned to a thread with or without `CAP_SYS_NICE`.
fn refused_by(has_capability: bool) -> &'static str {
    if has_capability {
        "not permitted, although CAP_SYS_NICE is effective; give the cpu cgroup a cpu.rt_runtime_us above 0, \
         or leave the user namespace"
    } else {
        "not permitted; run as root, grant CAP_SYS_NICE, or raise the limit of this shell by `sudo prlimit --pid $$ \
         --rtprio=99`"
    }
}

/// Returns whether `CAP_SYS_NICE` is effective for the calling thread.
fn may_schedule() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

/// Time reserved under `SCHED_DEADLINE`, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Reserved CPU time per period.
    pub runtime: u64,
    /// Relative deadline.
    pub deadline: u64,
    /// Period.
    pub period: u64,
}

/// Gives the calling thread this policy, such as `libc::SCHED_FIFO`, which may include
/// `libc::SCHED_RESET_ON_FORK`.
///
/// Does not allocate, so a child may call it between `fork` and `exec`.
///
/// # Errors
/// The kernel refuses the policy.
pub fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    set_policy_of(0, policy, priority)
}

/// Gives a thread this policy; 0 is the calling thread. See [`set_policy`].
///
/// # Errors
/// The thread does not exist, or the kernel refuses the policy.
pub fn set_policy_of(thread: i32, policy: i32, priority: i32) -> io::Result<()> {
    // The kernel's `struct sched_param` is one int. musl's has further members, which the kernel
    // does not read.
    // SAFETY: the kernel reads one int, from `priority`.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_thread(body: impl FnOnce() + Send + 'static) {
        std::thread::spawn(body).join().unwrap();
    }

    #[test]
    fn reads_back_policy() {
        on_a_thread(|| {
            set_policy(libc::SCHED_BATCH, 0).unwrap();
            let now = Scheduling::current().unwrap();
            assert_eq!((now.name(), now.priority(), now.is_real_time()), ("SCHED_BATCH", 0, false));
        });
    }

    #[test]
    fn reaps_without_real_time_policy_and_restores_it() {
        on_a_thread(|| {
            if set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 3).is_err() {
                return;
            }
            let flag = |scheduling: &Scheduling| scheduling.0.sched_flags;
            let before = Scheduling::current().unwrap();
            let during = without_real_time(Scheduling::current).unwrap();
            assert_eq!((during.name(), during.is_real_time()), ("SCHED_OTHER", false));
            let after = Scheduling::current().unwrap();
            assert_eq!((after.name(), after.priority(), flag(&after)), ("SCHED_FIFO", 3, flag(&before)));
        });
    }

    #[test]
    fn restores_policy_and_flag() {
        on_a_thread(|| {
            if set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 3).is_err() {
                return;
            }
            let before = Scheduling::current().unwrap();
            assert_eq!((before.name(), before.priority(), before.is_real_time()), ("SCHED_FIFO", 3, true));
            set_policy(libc::SCHED_OTHER, 0).unwrap();
            before.apply().unwrap();
            let flag = |scheduling: &Scheduling| scheduling.0.sched_flags;
            let after = Scheduling::current().unwrap();
            assert_eq!((after.name(), after.priority(), flag(&after)), ("SCHED_FIFO", 3, flag(&before)));
        });
    }

    #[test]
    fn keeps_nice_value() {
        on_a_thread(|| {
            // SAFETY: the call takes integers; on Linux it concerns the calling thread.
            let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
            // SAFETY: as above.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice() + 1) }, 0);
            let before = nice();
            set_policy(libc::SCHED_BATCH, 0).unwrap();
            Scheduling::current().unwrap().apply().unwrap();
            assert_eq!(nice(), before);
        });
    }

    #[test]
    fn rejects_invalid_priority() {
        let error = set_policy(libc::SCHED_FIFO, 100).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
