//! The supported kernel events, and the fields they need.

/// The treatment of a record.
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
    YieldEnter,
    YieldExit,
    SyscallEnter,
    SyscallExit,
    GraphEntry,
    GraphExit,
    ScheduleEnter,
    ScheduleExit,
    JobStart,
    JobEnd,
    Marker,
    IrqOff,
    IrqOn,
    PreemptOff,
    PreemptOn,
    NoiseNmi,
    NoiseIrq,
    NoiseSoftirq,
    NoiseThread,
}

/// Returns the treatment of the event `system:name`, and the fields it needs; `a|b` means the one
/// that exists.
pub(crate) fn recipe(system: &str, name: &str) -> Option<(Code, &'static [&'static str])> {
    const WOKEN: &[&str] = &["pid", "prio", "target_cpu"];
    const CALLER: &[&str] = &["caller_offs"];
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
        ("timer", "hrtimer_start") => (Code::TimerStart, &["hrtimer", "expires", "function|hrtimer"]),
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
        ("syscalls", "sys_enter_sched_yield") => (Code::YieldEnter, &[]),
        ("syscalls", "sys_exit_sched_yield") => (Code::YieldExit, &[]),
        ("syscalls", name) if name.starts_with("sys_enter_") => (Code::SyscallEnter, NUMBER),
        ("syscalls", name) if name.starts_with("sys_exit_") => (Code::SyscallExit, NUMBER),
        ("raw_syscalls", "sys_enter") => (Code::SyscallEnter, &["id"]),
        ("raw_syscalls", "sys_exit") => (Code::SyscallExit, &["id"]),
        ("ftrace", "funcgraph_entry") => (Code::GraphEntry, &["func"]),
        ("ftrace", "funcgraph_exit") => (Code::GraphExit, &["func"]),
        ("ftrace", "raw_data") => (Code::Marker, &["id"]),
        ("punctual", "schedule_enter") => (Code::ScheduleEnter, &[]),
        ("punctual", "schedule_exit") => (Code::ScheduleExit, &[]),
        ("preemptirq", "irq_disable") => (Code::IrqOff, CALLER),
        ("preemptirq", "irq_enable") => (Code::IrqOn, CALLER),
        ("preemptirq", "preempt_disable") => (Code::PreemptOff, CALLER),
        ("preemptirq", "preempt_enable") => (Code::PreemptOn, CALLER),
        ("osnoise", "nmi_noise") => (Code::NoiseNmi, &["duration"]),
        ("osnoise", "irq_noise") => (Code::NoiseIrq, &["duration", "vector"]),
        ("osnoise", "softirq_noise") => (Code::NoiseSoftirq, &["duration", "vector"]),
        ("osnoise", "thread_noise") => (Code::NoiseThread, &["duration", "pid"]),
        (_, "punctual_job_start") => (Code::JobStart, &["task", "released"]),
        (_, "punctual_job_end") => (Code::JobEnd, &["task"]),
        _ => return None,
    })
}
