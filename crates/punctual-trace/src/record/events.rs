//! The events to record: groups of events, each of which the kernel may lack.

use std::fmt;
use std::fs;

use super::error::RecordError;
use super::schedule;
use super::tracefs::Instance;

/// A group of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Group {
    /// Wake-ups, switches, migrations and inherited priorities. The analysis requires them.
    Sched,
    /// Interrupt handlers of devices.
    Irq,
    /// Local timer and interprocessor interrupts.
    Vectors,
    /// Softirqs.
    Softirq,
    /// High-resolution timers: when threads should have been woken.
    Timer,
    /// Contention of the kernel's own locks.
    Lock,
    /// Futex system calls, only of the traced threads if [threads are selected](super::Filter).
    Futex,
    /// System calls in which threads wait for their next job; like futex calls, only of the traced
    /// threads. They show when a thread has left the scheduler and when it will enter it. Calls
    /// that usually do not wait, such as `read`, are recorded only if threads are selected.
    Sleep,
    /// Sections with interrupts or preemption disabled.
    Preemptirq,
    /// Entry to and return from the scheduler, by the function_graph tracer.
    FunctionGraph,
    /// Entry to and return from the scheduler of the traced threads, by BPF programs; requires the
    /// cargo feature `bpf` and the clock `mono`.
    Schedule,
    /// The output of the kernel's osnoise tracer.
    Osnoise,
}

impl Group {
    /// The default of most recordings: all inexpensive groups. Contains
    /// [`Schedule`](Self::Schedule) if this crate is built with the BPF programs.
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

    /// All groups.
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

    /// Returns the name that selects the group.
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

    /// Returns the group of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }

    /// Returns the requirements of the group, and the effect of its absence.
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

    /// Returns the directory of tracefs with its events, and the events in it; an empty list means
    /// all pairs of entry and exit.
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
    // The following calls are frequent: see `is_frequent`.
    "sys_enter_read",
    "sys_exit_read",
    "sys_enter_recvfrom",
    "sys_exit_recvfrom",
    "sys_enter_recvmsg",
    "sys_exit_recvmsg",
];

/// Returns whether a call of the group [`Sleep`](Group::Sleep) waits for timers, pipes and sockets
/// but is also used for other purposes: recording it for all threads would be too expensive.
pub(super) fn is_frequent(event: &str) -> bool {
    ["read", "recvfrom", "recvmsg"].iter().any(|call| event.ends_with(&format!("_{call}")))
}

/// A requested group or event that this kernel does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The group.
    pub group: Group,
    /// The event, or `None` for the whole group.
    pub event: Option<String>,
    /// The reason, if it is not only that the kernel does not have the event, and the remedy.
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

/// Returns the events of the group that the kernel has, as directories of tracefs; adds the others
/// to `absent`.
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
        // A kernel may lack some variants of a call.
        false if matches!(group, Group::Futex | Group::Sleep) => {}
        false => {
            let one = |event: &String| Absent { group, event: Some(event.clone()), why: None };
            absent.extend(gone.into_iter().map(one));
        }
    }
    here.into_iter().map(path).collect()
}

/// Returns the kernel's events that match a pattern `group:event`, as directories of tracefs.
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
    // The events of this group are not tracepoints: they cannot be enabled.
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

/// Returns whether a name matches a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, mut rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    while let Some((part, more)) = rest.split_once('*') {
        let Some(at) = name.find(part) else { return false };
        (name, rest) = (&name[at + part.len()..], more);
    }
    name.ends_with(rest)
}

/// Enables the function tracer for functions that enter the scheduler, if the kernel supports it in
/// instances.
pub(super) fn function_graph(instance: &Instance) -> bool {
    let available = instance.read("available_tracers").unwrap_or_default();
    if !available.split_whitespace().any(|tracer| tracer == "function_graph") {
        return false;
    }
    let filter = instance.write("set_ftrace_filter", "schedule schedule_idle preempt_schedule_irq");
    filter.and_then(|()| instance.write("current_tracer", "function_graph")).is_ok()
}

/// Enables an event.
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
