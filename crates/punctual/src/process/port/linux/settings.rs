//! Applies the real-time settings of a worker thread, then reads back the effective ones.
//!
//! Every setting is attempted and none is assumed: a kernel with real-time group scheduling refuses
//! SCHED_FIFO to root in a new group, a container may hide capabilities, and an administrator may
//! change an affinity. The report shows the settings as read back.

use std::fmt;
use std::io::Error;
use std::num::NonZeroU64;

use punctual_process::scheduling::{self, Scheduling};

use crate::port::linux::stderr;

use super::cpu;
use super::stack::Bounds;

/// The requested settings of a worker thread.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) place: Place,
    /// The SCHED_FIFO priority; `None` for an ordinary thread.
    pub(crate) priority: Option<u8>,
}

/// Start of the message if the thread did not get its policy.
pub(crate) const NO_FIFO: &str = "no SCHED_FIFO";

/// CPUs of a thread.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// This CPU.
    Cpu(usize),
    /// Any of these.
    Among(cpu::Allowed),
    /// Its current affinity.
    Anywhere,
}

/// The settings granted to one thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ThreadSettings {
    /// The role of the thread.
    pub thread: String,
    /// Its TID.
    pub kernel_thread: u32,
    /// The scheduling policy, as read back.
    pub policy: String,
    /// The real-time priority, as read back; 0 for an ordinary thread.
    pub priority: i32,
    /// The CPUs it may run on, as read back.
    pub cpus: String,
    /// The size of its stack in bytes; `None` if unknown, as for `idle`, which runs on the caller's
    /// thread.
    pub stack: Option<usize>,
    /// Peak stack usage, in bytes; `None` if not measured.
    pub stack_used: Option<usize>,
    /// Missing settings, each with the remedy.
    pub missing: Vec<String>,
}

impl ThreadSettings {
    /// Returns what differs from these settings in those `at_end`, if anything does: only another
    /// process, or a task, can have changed them since the start.
    pub(crate) fn change(&self, at_end: &Effective) -> Option<String> {
        let at_start = Effective::of(self);
        (at_start != *at_end).then(|| {
            format!(
                "thread {} was changed during the run, from {at_start} to {at_end}: jobs after that may have been late; \
                 do not change its policy or CPUs, nor take its CPU offline",
                self.thread
            )
        })
    }
}

/// Policy, priority and CPUs of a thread, as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effective {
    policy: String,
    priority: i32,
    cpus: String,
}

impl Effective {
    /// Reads those of the calling thread.
    pub(crate) fn read() -> Self {
        let (policy, priority) = policy();
        let cpus = cpu::Allowed::of_this_thread();
        Self {
            policy: policy.into(),
            priority,
            cpus: cpus.map_or_else(|error| error.to_string(), |cpus| cpus.to_string()),
        }
    }

    fn of(settings: &ThreadSettings) -> Self {
        let ThreadSettings { policy, priority, cpus, .. } = settings;
        Self { policy: policy.clone(), priority: *priority, cpus: cpus.clone() }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, priority, cpus } = self;
        write!(f, "{policy} {priority} on CPUs {cpus}")
    }
}

/// Applies `wanted` to the calling thread, whose stack is `stack`, and reads back the effective
/// settings.
pub(crate) fn apply(thread: &str, wanted: Wanted, stack: Option<Bounds>) -> ThreadSettings {
    let mut missing = Vec::new();

    let (placed, where_to) = match &wanted.place {
        Place::Cpu(cpu) => (cpu::pin(*cpu), cpu.to_string()),
        Place::Among(cpus) => (cpus.apply(), cpus.to_string()),
        Place::Anywhere => (Ok(()), String::new()),
    };
    if let Err(error) = placed {
        missing.push(format!(
            "not pinned to CPU {where_to}: {error}; allow that CPU to the process (cpuset, taskset)"
        ));
    }
    // On its CPU, so that the memory is local, but before it has a priority that would delay
    // others.
    if let Some(stack) = stack {
        stack.fill();
    }
    let refused = wanted.priority.and_then(|priority| set_fifo(priority).err());
    if set_timer_slack().is_err() {
        missing.push("timer slack is not 1 ns: prctl(PR_SET_TIMERSLACK) was refused".into());
    }

    let Effective { policy, priority, cpus } = Effective::read();
    if let Some(wanted) = wanted.priority
        && (&*policy, priority) != ("SCHED_FIFO", i32::from(wanted))
    {
        let why = refused.map_or_else(
            || format!("the kernel accepted priority {wanted} and did not apply it"),
            |error| scheduling::explain_refusal(&error),
        );
        missing.push(format!("{NO_FIFO}: {why}"));
    }
    ThreadSettings {
        thread: thread.into(),
        kernel_thread: super::kernel_thread(),
        policy,
        priority,
        cpus,
        stack: stack.map(|stack| stack.size()),
        // Measured when the thread ends.
        stack_used: None,
        missing,
    }
}

/// Describes the calling thread, which needs no settings.
pub(crate) fn ordinary(thread: &str) -> ThreadSettings {
    let Effective { policy, priority, cpus } = Effective::read();
    ThreadSettings {
        thread: thread.into(),
        kernel_thread: super::kernel_thread(),
        policy,
        priority,
        cpus,
        stack: None,
        stack_used: None,
        missing: Vec::new(),
    }
}

/// Makes the calling thread SCHED_FIFO. Threads that it starts are ordinary ones.
fn set_fifo(priority: u8) -> Result<(), Error> {
    scheduling::set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority.into())
}

/// Makes the calling thread an ordinary one if it has inherited a real-time policy. This needs no
/// privileges.
pub(crate) fn leave_real_time() -> Result<(), Error> {
    match Scheduling::current() {
        Ok(now) if now.is_real_time() => scheduling::set_policy(libc::SCHED_OTHER, 0),
        _ => Ok(()),
    }
}

/// Runs `f` with a real-time priority if the kernel grants one, and restores the calling thread
/// afterwards. `f` must not start threads, because they would inherit it.
pub(crate) fn boosted<R>(priority: u8, f: impl FnOnce() -> R) -> R {
    let (before, slack) = (Scheduling::current().ok(), rustix::thread::current_timer_slack());
    let boosted = before.filter(|_| scheduling::set_policy(libc::SCHED_FIFO, priority.into()).is_ok());
    let result = f();
    // A thread may always return to its previous policy.
    if let Some(before) = boosted
        && let Err(error) = before.apply()
    {
        stderr::line(format_args!("the thread of idle keeps a real-time priority: {error}"));
    }
    // Since Linux 6.12, a thread that leaves a real-time policy gets the slack that its parent had
    // when it was started.
    if let Some(slack) = slack.ok().and_then(NonZeroU64::new) {
        let _ = rustix::thread::set_current_timer_slack(Some(slack));
    }
    result
}

/// Returns the name of the policy of the calling thread, and its real-time priority.
pub(crate) fn policy() -> (&'static str, i32) {
    Scheduling::current().map_or(("unknown", 0), |now| (now.name(), now.priority()))
}

/// Real-time threads have no timer slack anyway; this is for threads whose policy was refused.
pub(crate) fn set_timer_slack() -> rustix::io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boost_ends() {
        std::thread::spawn(|| {
            let inside = boosted(1, policy);
            assert!(inside == ("SCHED_FIFO", 1) || inside == ("SCHED_OTHER", 0), "{inside:?}");
            assert_eq!(policy(), ("SCHED_OTHER", 0));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn reports_refused_settings_and_reads_back_others() {
        // On a separate thread, because settings end with the thread.
        std::thread::spawn(|| {
            let cpu = cpu::Allowed::of_this_thread().unwrap().iter().next_back().unwrap();
            let settings = apply("test", Wanted { place: Place::Cpu(cpu), priority: Some(1) }, None);
            assert_eq!(settings.cpus, cpu.to_string());
            match settings.policy.as_str() {
                "SCHED_FIFO" => assert_eq!((settings.priority, settings.missing.len()), (1, 0)),
                _ => assert!(settings.missing[0].contains("CAP_SYS_NICE"), "{:?}", settings.missing),
            }
            let absurd = apply("test", Wanted { place: Place::Cpu(1023), priority: Some(1) }, None);
            assert!(absurd.missing.iter().any(|m| m.contains("not pinned to CPU 1023")), "{absurd:?}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn names_changed_settings() {
        let start = ThreadSettings { thread: "level 2".into(), ..ordinary("level 2") };
        assert_eq!(start.change(&Effective::of(&start)), None);
        let moved = Effective { policy: "SCHED_BATCH".into(), priority: 0, cpus: "0,7".into() };
        let change = start.change(&moved).expect("the policy differs");
        assert!(change.starts_with("thread level 2 was changed during the run, from SCHED_"), "{change}");
        assert!(change.contains(" to SCHED_BATCH 0 on CPUs 0,7: "), "{change}");
        for other in [
            Effective { policy: "SCHED_RR".into(), ..Effective::of(&start) },
            Effective { priority: 99, ..Effective::of(&start) },
            Effective { cpus: "none".into(), ..Effective::of(&start) },
        ] {
            assert!(start.change(&other).is_some(), "{other:?}");
        }
    }
}
