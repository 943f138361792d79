//! One event of a trace: what the analysis knows of the kernel.
//!
//! Readers translate the kernel's events into these, by the names of their fields, which stay while offsets and types
//! differ between kernels. What the analysis has no use for, they leave out.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, Task};
//!
//! let woken = Task { id: 411, priority: 40 };
//! let event = Event { time: 1_000, cpu: 1, by: 17, kind: Kind::Waking { task: woken, cpu: 1 } };
//! assert!(event.time < 2_000);
//! ```

/// A thread, by the kernel's number; 0 is the idle thread of each CPU.
pub type Tid = u32;

/// A thread at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: Tid,
    /// Its priority as the kernel counts: 0 to 98 are real time, 0 the highest; 100 to 139 are not; -1 is SCHED_DEADLINE; 120
    /// is the ordinary default. For people it is a [`Priority`](crate::priority::Priority).
    pub priority: i32,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in ns by the trace's clock.
    pub time: u64,
    /// On which CPU it was recorded.
    pub cpu: u16,
    /// The thread that was running there.
    pub by: Tid,
    /// What happened.
    pub kind: Kind,
}

/// How a thread left its CPU, from `prev_state` of `sched_switch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchOut {
    /// It could have gone on: it was preempted (`R`, `R+`).
    Runnable,
    /// It sleeps and signals wake it (`S`), or is a thread of the kernel that waits for work (`I`).
    Sleeping,
    /// It sleeps and signals do not (`D`), which includes waiting for the kernel's own sleeping locks.
    Uninterruptible,
    /// It has ended (`X`, `Z`), or is stopped or traced.
    Gone,
}

/// What the kernel's own code can turn off on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// Interrupts.
    Interrupts,
    /// Preemption of threads.
    Preemption,
}

/// What the osnoise tracer found to have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Non-maskable interrupts, of which no other event tells.
    Nmi,
    /// An interrupt's handler, by its number.
    Irq(i32),
    /// A softirq.
    Softirq(i32),
    /// A thread.
    Thread(Tid),
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `sched_waking`: somebody, on this event's CPU, begins to wake `task`.
    Waking {
        /// Who is woken.
        task: Task,
        /// The CPU it is to run on.
        cpu: u16,
    },
    /// `sched_wakeup` or `sched_wakeup_new`: `task` is in a run queue.
    Wakeup {
        /// Who was woken.
        task: Task,
        /// The CPU it is to run on.
        cpu: u16,
        /// Whether it has just been created.
        new: bool,
    },
    /// `sched_switch`.
    Switch {
        /// Who leaves.
        from: Task,
        /// How.
        reason: SwitchOut,
        /// Who comes.
        to: Task,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Who is moved.
        task: Task,
        /// From this CPU.
        from: u16,
        /// To this one.
        to: u16,
    },
    /// `sched_pi_setprio`: `task` inherits a priority, or gives it back.
    Inherit {
        /// Who.
        task: Tid,
        /// The priority before.
        old: i32,
        /// The priority after.
        new: i32,
    },
    /// `irq_handler_entry`.
    IrqEntry {
        /// The interrupt's number.
        irq: u32,
    },
    /// `irq_handler_exit`.
    IrqExit {
        /// The interrupt's number.
        irq: u32,
    },
    /// Any entry of the group `irq_vectors`: local timer, rescheduling and other interprocessor interrupts.
    VectorEntry {
        /// The vector.
        vector: u16,
    },
    /// The matching exit.
    VectorExit {
        /// The vector.
        vector: u16,
    },
    /// `softirq_entry`.
    SoftirqEntry {
        /// Which (`TIMER_SOFTIRQ` is 1, `NET_RX_SOFTIRQ` 3, …).
        softirq: u8,
    },
    /// `softirq_exit`.
    SoftirqExit {
        /// Which.
        softirq: u8,
    },
    /// `hrtimer_start`.
    TimerStart {
        /// The address of the timer.
        timer: u64,
        /// When it is to expire, in ns of its own clock.
        expires: u64,
    },
    /// `hrtimer_start` of the timer that gives a SCHED_DEADLINE thread its runtime anew, with the function `dl_task_timer`: the
    /// thread has used it up or has yielded, and may not run before. The kernel's deadline servers have such timers too.
    BudgetTimerStart {
        /// The address of the timer.
        timer: u64,
        /// When it is to expire, in ns of CLOCK_MONOTONIC.
        expires: u64,
    },
    /// `hrtimer_expire_entry`.
    TimerExpire {
        /// The address of the timer.
        timer: u64,
        /// What its clock shows, in ns.
        now: u64,
    },
    /// `hrtimer_expire_exit`.
    TimerExpired {
        /// The address of the timer.
        timer: u64,
    },
    /// `contention_begin`: the thread starts to wait for a lock of the kernel.
    ContentionBegin {
        /// The address of the lock.
        lock: u64,
        /// What kind it is (`LCB_F_*` of `trace/events/lock.h`).
        flags: u32,
    },
    /// `contention_end`.
    ContentionEnd {
        /// The address of the lock.
        lock: u64,
    },
    /// `sys_enter_futex`.
    FutexEnter {
        /// The address of the word in the caller's memory.
        word: u64,
        /// The operation, with its flags.
        operation: u32,
        /// The argument `val`.
        value: u32,
    },
    /// `sys_exit_futex`.
    FutexExit {
        /// What it returned.
        result: i64,
    },
    /// `sys_enter_sched_yield`: a SCHED_DEADLINE thread says so that its job is done.
    YieldEnter,
    /// `sys_exit_sched_yield`.
    YieldExit,
    /// Another system call begins.
    SyscallEnter {
        /// Its number.
        number: u32,
    },
    /// It returns.
    SyscallExit {
        /// Its number.
        number: u32,
    },
    /// The scheduler is entered to choose a thread (`function_graph` of `schedule`, or [BPF programs](crate::record::Group::Schedule)).
    ScheduleEnter,
    /// It returns, on behalf of whoever runs now.
    ScheduleExit,
    /// A Punctual app marks the start of a job of the calling thread.
    JobStart {
        /// Which task; the trace has the names.
        task: u16,
        /// When the job was released, in ns by `CLOCK_MONOTONIC`.
        released: u64,
    },
    /// It marks the end.
    JobEnd {
        /// Which task.
        task: u16,
    },
    /// A Punctual app says, some time later, that a job of its half on a CPU without Linux has ended.
    OfflineJob {
        /// Which task.
        task: u16,
        /// Which CPU; 255 also stands for all above.
        cpu: u8,
        /// When it started, in ns by `CLOCK_MONOTONIC`.
        started: u64,
        /// How long before it was released, in ns. Of this and what follows, the largest number means at least so much.
        jitter: u32,
        /// How long after it ended.
        window: u32,
        /// For how long of that jobs ran that preempted it.
        preempted: u32,
    },
    /// It says that jobs there have ended of which there is no such event.
    OfflineLost {
        /// Which CPU; 255 also stands for all above.
        cpu: u8,
        /// How many.
        count: u32,
    },
    /// `irq_disable` or `preempt_disable`.
    Disable {
        /// What is off from now on.
        section: Section,
        /// By whom, in bytes from the kernel's symbol `_stext`.
        caller: i32,
    },
    /// `irq_enable` or `preempt_enable`.
    Enable {
        /// What is on again.
        section: Section,
        /// By whom, as in [`Kind::Disable`].
        caller: i32,
    },
    /// `irq_noise` and its like: something has ended that ran instead of the thread. Only while somebody runs the osnoise or
    /// timerlat tracer.
    Noise {
        /// What.
        source: Noise,
        /// For how long it ran, less what interrupted it, in ns.
        ns: u64,
    },
    /// An event that the analysis does not know, of those that were [asked for](crate::read::Events::with_others).
    Other {
        /// Its number, by which the [formats](crate::read::Trace::formats) name it.
        event: u16,
    },
    /// Events of this CPU were lost before this time. Where it can, a reader says so right behind the last event before the gap.
    Lost {
        /// How many, if the kernel says.
        count: u64,
    },
}
