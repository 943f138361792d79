//! What is recorded: groups of events, each of which the kernel may lack.

use std::fmt;
use std::fs;

use super::error::RecordError;
use super::schedule;
use super::tracefs::Instance;

/// A group of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Group {
    /// Wake-ups, switches, migrations and inherited priorities. Without it there is nothing to analyse.
    Sched,
    /// Handlers of interrupts of devices.
    Irq,
    /// Local timer and interprocessor interrupts.
    Vectors,
    /// Softirqs.
    Softirq,
    /// High-resolution timers: when threads should have been woken.
    Timer,
    /// Contention of the kernel's own locks.
    Lock,
    /// Futex system calls, of the traced threads only if [threads are chosen](super::Filter).
    Futex,
    /// System calls in which threads wait for their next job, of the traced threads only as those on futexes: they show when
    /// a thread has left the scheduler and when it will enter it. Those that mostly do not wait, such as `read`, are recorded
    /// only if threads are chosen.
    Sleep,
    /// Where interrupts and preemption are off.
    Preemptirq,
    /// The entry to and return from the scheduler, by the function_graph tracer.
    FunctionGraph,
    /// The same, of the traced threads, by BPF programs; with the cargo feature `bpf`, by the clock `mono` only.
    Schedule,
    /// What the kernel's osnoise tracer finds.
    Osnoise,
}

impl Group {
    /// What most recordings want: everything that is cheap. [`Schedule`](Self::Schedule) is among it if this is built with the
    /// programs.
    pub const USUAL: &'static [Self] = {
        const CHEAP: [Group; 9] = [
            Group::Sched,
            Group::Irq,
            Group::Vectors,
            Group::Softirq,
            Group::Timer,
            Group::Lock,
            Group::Futex,
            Group::Sleep,
            Group::Schedule,
        ];
        CHEAP.split_at(if schedule::BUILT_IN { CHEAP.len() } else { CHEAP.len() - 1 }).0
    };

    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Sched,
        Self::Irq,
        Self::Vectors,
        Self::Softirq,
        Self::Timer,
        Self::Lock,
        Self::Futex,
        Self::Sleep,
        Self::Preemptirq,
        Self::FunctionGraph,
        Self::Schedule,
        Self::Osnoise,
    ];

    /// The name by which a user asks for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sched => "sched",
            Self::Irq => "irq",
            Self::Vectors => "irq_vectors",
            Self::Softirq => "softirq",
            Self::Timer => "timer",
            Self::Lock => "lock",
            Self::Futex => "futex",
            Self::Sleep => "sleep",
            Self::Preemptirq => "preemptirq",
            Self::FunctionGraph => "function_graph",
            Self::Schedule => "schedule",
            Self::Osnoise => "osnoise",
        }
    }

    /// The group of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }

    /// What a kernel needs to have it, and what is the matter without.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Sched => "it needs CONFIG_EVENT_TRACING; what inheritance and migration did stays unknown",
            Self::Irq => "it needs CONFIG_EVENT_TRACING; handlers of devices count as execution",
            Self::Vectors => {
                "it needs an x86 processor; timer and interprocessor interrupts count as execution"
            }
            Self::Softirq => "it needs CONFIG_EVENT_TRACING; softirqs count as execution",
            Self::Timer => {
                "it needs CONFIG_EVENT_TRACING; jobs begin when they are woken, not when their timers were due"
            }
            Self::Lock => "it needs Linux 5.19; spinning on locks of the kernel counts as execution",
            Self::Futex => "it needs CONFIG_FTRACE_SYSCALLS; a wait for a mutex ends the job",
            Self::Sleep => "it needs CONFIG_FTRACE_SYSCALLS; SS and C are known within wider bounds",
            Self::Preemptirq => "it needs CONFIG_PREEMPTIRQ_TRACEPOINTS; no term depends on it",
            Self::FunctionGraph => {
                "it needs CONFIG_FUNCTION_GRAPH_TRACER and Linux 6.11; SS and C are known within bounds"
            }
            Self::Schedule => {
                "it needs Linux 6.15 with CONFIG_DEBUG_INFO_BTF; SS and C are known within bounds"
            }
            Self::Osnoise => "it needs CONFIG_OSNOISE_TRACER; no term depends on it",
        }
    }

    /// The directory of tracefs that its events are in, and which of those there; none means all pairs of entry and exit.
    pub(super) fn events(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Sched => (
                "sched",
                &[
                    "sched_switch",
                    "sched_waking",
                    "sched_wakeup",
                    "sched_wakeup_new",
                    "sched_migrate_task",
                    "sched_pi_setprio",
                ],
            ),
            Self::Irq => ("irq", &["irq_handler_entry", "irq_handler_exit"]),
            Self::Softirq => ("irq", &["softirq_entry", "softirq_exit"]),
            Self::Vectors => ("irq_vectors", &[]),
            Self::Timer => ("timer", &["hrtimer_start", "hrtimer_expire_entry", "hrtimer_expire_exit"]),
            Self::Lock => ("lock", &["contention_begin", "contention_end"]),
            Self::Futex => (
                "syscalls",
                &[
                    "sys_enter_futex",
                    "sys_exit_futex",
                    "sys_enter_futex_wait",
                    "sys_exit_futex_wait",
                    "sys_enter_futex_wake",
                    "sys_exit_futex_wake",
                ],
            ),
            Self::Sleep => ("syscalls", &SLEEP),
            Self::Preemptirq => {
                ("preemptirq", &["irq_disable", "irq_enable", "preempt_disable", "preempt_enable"])
            }
            Self::FunctionGraph => ("ftrace", &["funcgraph_entry", "funcgraph_exit"]),
            Self::Schedule => ("punctual", &["schedule_enter", "schedule_exit"]),
            Self::Osnoise => ("osnoise", &["irq_noise", "softirq_noise", "thread_noise", "nmi_noise"]),
        }
    }
}

/// The calls of the group [`Sleep`](Group::Sleep).
pub(super) const SLEEP: [&str; 36] = [
    "sys_enter_clock_nanosleep",
    "sys_exit_clock_nanosleep",
    "sys_enter_nanosleep",
    "sys_exit_nanosleep",
    "sys_enter_epoll_wait",
    "sys_exit_epoll_wait",
    "sys_enter_epoll_pwait",
    "sys_exit_epoll_pwait",
    "sys_enter_poll",
    "sys_exit_poll",
    "sys_enter_ppoll",
    "sys_exit_ppoll",
    "sys_enter_select",
    "sys_exit_select",
    "sys_enter_pselect6",
    "sys_exit_pselect6",
    "sys_enter_rt_sigtimedwait",
    "sys_exit_rt_sigtimedwait",
    "sys_enter_sched_yield",
    "sys_exit_sched_yield",
    "sys_enter_epoll_pwait2",
    "sys_exit_epoll_pwait2",
    "sys_enter_mq_timedreceive",
    "sys_exit_mq_timedreceive",
    "sys_enter_pause",
    "sys_exit_pause",
    "sys_enter_rt_sigsuspend",
    "sys_exit_rt_sigsuspend",
    "sys_enter_io_uring_enter",
    "sys_exit_io_uring_enter",
    // From here on those that are frequent: see `is_frequent`.
    "sys_enter_read",
    "sys_exit_read",
    "sys_enter_recvfrom",
    "sys_exit_recvfrom",
    "sys_enter_recvmsg",
    "sys_exit_recvmsg",
];

/// Whether a call of the group [`Sleep`](Group::Sleep) is one with which a thread waits for timers, pipes and sockets, but
/// which everybody makes for other things: of all threads they are too many.
pub(super) fn is_frequent(event: &str) -> bool {
    ["read", "recvfrom", "recvmsg"].iter().any(|call| event.ends_with(&format!("_{call}")))
}

/// Something that was asked for and that cannot be had from this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The group it is in.
    pub group: Group,
    /// Which event, or nothing if it is the whole group.
    pub event: Option<String>,
    /// Why, if there is more to say than that the kernel does not have it, and how to get it.
    pub why: Option<String>,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, needs) = (self.group.name(), self.group.needs());
        match (&self.why, &self.event) {
            (Some(why), _) => write!(f, "{name}: {why}"),
            (None, None) => write!(f, "the kernel has no events of the group {name}; {needs}"),
            (None, Some(event)) => write!(f, "the kernel has no {event} in the group {name}; {needs}"),
        }
    }
}

/// The events of the group that the kernel has, as directories of tracefs; the others are added to `absent`.
pub(super) fn present(instance: &Instance, group: Group, absent: &mut Vec<Absent>) -> Vec<String> {
    let (system, names) = group.events();
    let names: Vec<String> = match names {
        [] => {
            let entries =
                fs::read_dir(instance.path().join("events").join(system)).into_iter().flatten().flatten();
            let mut names: Vec<_> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.retain(|name| name.ends_with("_entry") || name.ends_with("_exit"));
            names.sort();
            names
        }
        names => names.iter().map(|&name| name.to_owned()).collect(),
    };
    let path = |name: &String| format!("events/{system}/{name}");
    let (here, gone): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| instance.has(&format!("{}/enable", path(name))));
    match here.is_empty() {
        true => absent.push(Absent { group, event: None, why: None }),
        // A kernel need not have every kind of a call.
        false if matches!(group, Group::Futex | Group::Sleep) => {}
        false => {
            let one = |event: &String| Absent { group, event: Some(event.clone()), why: None };
            absent.extend(gone.into_iter().map(one));
        }
    }
    here.into_iter().map(path).collect()
}

/// The events of the kernel that a pattern `group:event` means, as directories of tracefs.
pub(super) fn matching(instance: &Instance, pattern: &str) -> Result<Vec<String>, RecordError> {
    let (group, event) = pattern.split_once(':').unwrap_or((pattern, "*"));
    let entries = |path: &std::path::Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let root = instance.path().join("events");
    let mut found = Vec::new();
    // The events of this group are no tracepoints: nothing turns them on.
    for group in entries(&root).into_iter().filter(|name| name != "ftrace" && fits(group, name)) {
        for event in entries(&root.join(&group)).into_iter().filter(|name| fits(event, name)) {
            let event = format!("events/{group}/{event}");
            if instance.has(&format!("{event}/enable")) {
                found.push(event);
            }
        }
    }
    if found.is_empty() { Err(RecordError::Tracepoint { pattern: pattern.to_owned() }) } else { Ok(found) }
}

/// Whether a name is what a pattern with `*` means.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, mut rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    while let Some((part, more)) = rest.split_once('*') {
        let Some(at) = name.find(part) else { return false };
        (name, rest) = (&name[at + part.len()..], more);
    }
    name.ends_with(rest)
}

/// Turns the tracer of functions on for those that enter the scheduler, if the kernel has it for instances.
pub(super) fn function_graph(instance: &Instance) -> bool {
    let available = instance.read("available_tracers").unwrap_or_default();
    if !available.split_whitespace().any(|tracer| tracer == "function_graph") {
        return false;
    }
    let filter = instance.write("set_ftrace_filter", "schedule schedule_idle preempt_schedule_irq");
    filter.and_then(|()| instance.write("current_tracer", "function_graph")).is_ok()
}

/// Turns an event on.
pub(super) fn enable(instance: &Instance, event: &str) -> Result<(), RecordError> {
    instance.write(&format!("{event}/enable"), "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_patterns_of_events() {
        for pattern in ["sys_enter_read", "sys_*", "*", "*read", "s*_*_r*d", "*enter*"] {
            assert!(fits(pattern, "sys_enter_read"), "{pattern}");
        }
        for pattern in ["", "sys_", "*write", "read*", "sys_*enter_*enter_read", "*x*"] {
            assert!(!fits(pattern, "sys_enter_read"), "{pattern}");
        }
    }
}
