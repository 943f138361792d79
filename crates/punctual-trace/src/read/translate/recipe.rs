//! Which events of the kernel are of use, and the fields they are made of.

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Unknown,
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Migrate,
    Inherit,
    IrqEntry,
    IrqExit,
    VectorEntry,
    VectorExit,
    SoftirqEntry,
    SoftirqExit,
    TimerStart,
    TimerExpire,
    TimerExpired,
    ContentionBegin,
    ContentionEnd,
    FutexEnter,
    FutexWait,
    FutexWake,
    FutexExit,
    SyscallEnter,
    SyscallExit,
    GraphEntry,
    GraphExit,
    ScheduleEnter,
    ScheduleExit,
    JobStart,
    JobEnd,
    Marker,
}

/// What becomes of the event `system:name`, and the fields that it takes; `a|b` is whichever there is.
pub(crate) fn recipe(system: &str, name: &str) -> Option<(Code, &'static [&'static str])> {
    const WOKEN: &[&str] = &["pid", "prio", "target_cpu"];
    const NUMBER: &[&str] = &["__syscall_nr|nr"];
    Some(match (system, name) {
        ("sched", "sched_switch") => {
            (Code::Switch, &["prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio"])
        }
        ("sched", "sched_waking") => (Code::Waking, WOKEN),
        ("sched", "sched_wakeup") => (Code::Wakeup, WOKEN),
        ("sched", "sched_wakeup_new") => (Code::WakeupNew, WOKEN),
        ("sched", "sched_migrate_task") => (Code::Migrate, &["pid", "prio", "orig_cpu", "dest_cpu"]),
        ("sched", "sched_pi_setprio") => (Code::Inherit, &["pid", "oldprio", "newprio"]),
        ("irq", "irq_handler_entry") => (Code::IrqEntry, &["irq"]),
        ("irq", "irq_handler_exit") => (Code::IrqExit, &["irq"]),
        ("irq", "softirq_entry") => (Code::SoftirqEntry, &["vec"]),
        ("irq", "softirq_exit") => (Code::SoftirqExit, &["vec"]),
        ("irq_vectors", name) if name.ends_with("_entry") => (Code::VectorEntry, &["vector"]),
        ("irq_vectors", name) if name.ends_with("_exit") => (Code::VectorExit, &["vector"]),
        ("timer", "hrtimer_start") => (Code::TimerStart, &["hrtimer", "expires"]),
        ("timer", "hrtimer_expire_entry") => (Code::TimerExpire, &["hrtimer", "now"]),
        ("timer", "hrtimer_expire_exit") => (Code::TimerExpired, &["hrtimer"]),
        ("lock", "contention_begin") => (Code::ContentionBegin, &["lock_addr", "flags"]),
        ("lock", "contention_end") => (Code::ContentionEnd, &["lock_addr"]),
        ("syscalls", "sys_enter_futex" | "sys_enter_futex_time32") => {
            (Code::FutexEnter, &["uaddr", "op", "val"])
        }
        ("syscalls", "sys_enter_futex_wait") => (Code::FutexWait, &["uaddr", "val", "flags"]),
        ("syscalls", "sys_enter_futex_wake") => (Code::FutexWake, &["uaddr", "nr", "flags"]),
        (
            "syscalls",
            "sys_exit_futex" | "sys_exit_futex_time32" | "sys_exit_futex_wait" | "sys_exit_futex_wake",
        ) => (Code::FutexExit, &["ret"]),
        ("syscalls", name) if name.starts_with("sys_enter_") => (Code::SyscallEnter, NUMBER),
        ("syscalls", name) if name.starts_with("sys_exit_") => (Code::SyscallExit, NUMBER),
        ("raw_syscalls", "sys_enter") => (Code::SyscallEnter, &["id"]),
        ("raw_syscalls", "sys_exit") => (Code::SyscallExit, &["id"]),
        ("ftrace", "funcgraph_entry") => (Code::GraphEntry, &["func"]),
        ("ftrace", "funcgraph_exit") => (Code::GraphExit, &["func"]),
        ("ftrace", "raw_data") => (Code::Marker, &["id"]),
        ("punctual", "schedule_enter") => (Code::ScheduleEnter, &[]),
        ("punctual", "schedule_exit") => (Code::ScheduleExit, &[]),
        (_, "punctual_job_start") => (Code::JobStart, &["task", "released"]),
        (_, "punctual_job_end") => (Code::JobEnd, &["task"]),
        _ => return None,
    })
}
