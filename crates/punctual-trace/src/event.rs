//! One event of a trace, as the analysis uses it.
//!
//! Readers translate kernel events into these by the names of their fields, which are stable, while
//! offsets and types differ between kernels. They drop events that the analysis does not use.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, Task};
//!
//! let woken = Task { id: 411, priority: 40 };
//! let event = Event { time: 1_000, cpu: 1, by: 17, kind: Kind::Waking { task: woken, cpu: 1 } };
//! assert!(event.time < 2_000);
//! ```

use std::borrow::Cow;
use std::fmt;

/// Kernel thread ID; 0 is the idle thread of each CPU.
pub type Tid = u32;

/// Name of a thread as the kernel stores it (`comm`): at most 15 bytes.
///
/// Any process can choose any bytes, so [`text`](Self::text) may contain control characters.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Comm([u8; 16]);

impl Comm {
    /// Truncates `name` to 15 bytes, at a character boundary.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; 16];
        let end = name.floor_char_boundary(15);
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Self::from_bytes(bytes)
    }

    /// The name in a record, up to the first zero.
    #[must_use]
    pub fn from_bytes(mut bytes: [u8; 16]) -> Self {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        bytes[end..].fill(0);
        Self(bytes)
    }

    /// Returns the name, with replacement characters for bytes that are not UTF-8.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end])
    }

    /// Returns whether the name is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

/// A thread at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Thread ID.
    pub id: Tid,
    /// Priority as the kernel counts: 0 to 98 are real-time, 0 the highest; 100 to 139 are not; -1
    /// is SCHED_DEADLINE; 120 is the ordinary default. Texts show it as a
    /// [`Priority`](crate::priority::Priority).
    pub priority: i32,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time in ns on the trace's clock.
    pub time: u64,
    /// CPU on which it was recorded.
    pub cpu: u16,
    /// Thread that was running on this CPU.
    pub by: Tid,
    /// Kind of event.
    pub kind: Kind,
}

/// State in which a thread left its CPU, from `prev_state` of `sched_switch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchOut {
    /// Preempted while runnable (`R`, `R+`).
    Runnable,
    /// Sleeping, interruptible by signals (`S`), or an idle kernel thread (`I`).
    Sleeping,
    /// Sleeping, not interruptible by signals (`D`), which includes waits for the kernel's own
    /// sleeping locks.
    Uninterruptible,
    /// Ended (`X`, `Z`), stopped or traced.
    Gone,
}

/// Mechanism that kernel code can disable on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// Interrupts.
    Interrupts,
    /// Preemption of threads.
    Preemption,
}

/// Source of noise reported by the osnoise tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Non-maskable interrupts, which no other event reports.
    Nmi,
    /// An interrupt handler, by interrupt number.
    Irq(i32),
    /// A softirq.
    Softirq(i32),
    /// A thread.
    Thread(Tid),
}

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `sched_waking`: the thread running on this event's CPU begins to wake `task`.
    Waking {
        /// Thread being woken.
        task: Task,
        /// CPU that it is to run on.
        cpu: u16,
    },
    /// `sched_wakeup` or `sched_wakeup_new`: `task` is in a run queue.
    Wakeup {
        /// Thread that was woken.
        task: Task,
        /// CPU that it is to run on.
        cpu: u16,
        /// True if the thread was just created.
        new: bool,
    },
    /// `sched_switch`.
    Switch {
        /// Thread switched out.
        from: Task,
        /// State of the thread switched out.
        reason: SwitchOut,
        /// Thread switched in.
        to: Task,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Thread being moved.
        task: Task,
        /// Previous CPU.
        from: u16,
        /// New CPU.
        to: u16,
    },
    /// `sched_pi_setprio`: `task` inherits a priority, or returns to its own.
    Inherit {
        /// The thread.
        task: Tid,
        /// Previous priority.
        old: i32,
        /// New priority.
        new: i32,
    },
    /// `irq_handler_entry`.
    IrqEntry {
        /// Interrupt number.
        irq: u32,
    },
    /// `irq_handler_exit`.
    IrqExit {
        /// Interrupt number.
        irq: u32,
    },
    /// Any entry event of the group `irq_vectors`: local timer, rescheduling and other
    /// interprocessor interrupts.
    VectorEntry {
        /// Vector number.
        vector: u16,
    },
    /// The matching exit event.
    VectorExit {
        /// Vector number.
        vector: u16,
    },
    /// `softirq_entry`.
    SoftirqEntry {
        /// Softirq number (`TIMER_SOFTIRQ` is 1, `NET_RX_SOFTIRQ` 3, …).
        softirq: u8,
    },
    /// `softirq_exit`.
    SoftirqExit {
        /// Softirq number.
        softirq: u8,
    },
    /// `hrtimer_start`.
    TimerStart {
        /// Address of the timer.
        timer: u64,
        /// Expiry, in ns on the timer's own clock.
        expires: u64,
    },
    /// `hrtimer_start` with the function `dl_task_timer`, which replenishes the runtime of a
    /// SCHED_DEADLINE thread: the thread has used up its runtime or has yielded, and may not run
    /// before the expiry. The kernel's deadline servers have such timers too.
    BudgetTimerStart {
        /// Address of the timer.
        timer: u64,
        /// Expiry, in ns of CLOCK_MONOTONIC.
        expires: u64,
    },
    /// `hrtimer_expire_entry`.
    TimerExpire {
        /// Address of the timer.
        timer: u64,
        /// Current time on the timer's clock, in ns.
        now: u64,
    },
    /// `hrtimer_expire_exit`.
    TimerExpired {
        /// Address of the timer.
        timer: u64,
    },
    /// `contention_begin`: the thread starts to wait for a kernel lock.
    ContentionBegin {
        /// Address of the lock.
        lock: u64,
        /// Kind of lock (`LCB_F_*` of `trace/events/lock.h`).
        flags: u32,
    },
    /// `contention_end`.
    ContentionEnd {
        /// Address of the lock.
        lock: u64,
    },
    /// `sys_enter_futex`.
    FutexEnter {
        /// Address of the futex word in the caller's memory.
        word: u64,
        /// Operation, with its flags.
        operation: u32,
        /// The argument `val`.
        value: u32,
    },
    /// `sys_exit_futex`.
    FutexExit {
        /// Return value.
        result: i64,
    },
    /// `sys_enter_sched_yield`, with which a SCHED_DEADLINE thread ends its job.
    YieldEnter,
    /// `sys_exit_sched_yield`.
    YieldExit,
    /// Entry of another system call.
    SyscallEnter {
        /// System call number.
        number: u32,
    },
    /// Exit of another system call.
    SyscallExit {
        /// System call number.
        number: u32,
    },
    /// Entry of the scheduler (`function_graph` of `schedule`, or [BPF
    /// programs](crate::record::Group::Schedule)).
    ScheduleEnter,
    /// Exit of the scheduler, on behalf of the thread that runs now.
    ScheduleExit,
    /// Start of a job of the calling thread, marked by a Punctual app.
    JobStart {
        /// Task number; the trace contains the names.
        task: u16,
        /// Release of the job, in ns of `CLOCK_MONOTONIC`.
        released: u64,
    },
    /// End of a job, marked by a Punctual app.
    JobEnd {
        /// Task number.
        task: u16,
    },
    /// Late report of a Punctual app that a job of its part on a CPU without Linux has ended.
    OfflineJob {
        /// Which task.
        task: u16,
        /// Which CPU; 255 also stands for all above.
        cpu: u8,
        /// Start in ns on `CLOCK_MONOTONIC`.
        started: u64,
        /// Time from the release to the start, in ns. In this and the following fields, the maximum
        /// value means at least that much.
        jitter: u32,
        /// Time from the start to the end.
        window: u32,
        /// For how long of that jobs ran that preempted it.
        preempted: u32,
    },
    /// Report that jobs have ended there without an `OfflineJob` event.
    OfflineLost {
        /// Which CPU; 255 also stands for all above.
        cpu: u8,
        /// Number of jobs.
        count: u32,
    },
    /// `irq_disable` or `preempt_disable`.
    Disable {
        /// Mechanism disabled from this event on.
        section: Section,
        /// Caller, as an offset in bytes from the kernel's symbol `_stext`.
        caller: i32,
    },
    /// `irq_enable` or `preempt_enable`.
    Enable {
        /// Mechanism enabled again.
        section: Section,
        /// Caller, as in [`Kind::Disable`].
        caller: i32,
    },
    /// `irq_noise` and related events: the end of something that ran instead of the thread.
    /// Recorded only while the osnoise or timerlat tracer runs.
    Noise {
        /// Source of the noise.
        source: Noise,
        /// Its run time without interruptions, in ns.
        ns: u64,
    },
    /// A thread has this name from the following event on. Precedes the event that shows the name,
    /// if the name is new or may be.
    Named {
        /// The thread.
        thread: Tid,
        /// Its name.
        name: Comm,
    },
    /// An event unknown to the analysis, if [requested](crate::read::Events::with_others).
    Other {
        /// Event number, by which the [formats](crate::read::Trace::formats) name it.
        event: u16,
    },
    /// Events of this CPU were lost before this time. If possible, a reader emits this directly
    /// after the last event before the gap.
    Lost {
        /// Number of lost events, if the kernel reports it.
        count: u64,
    },
}

/// Events are copied by the million.
const _: () = assert!(size_of::<Event>() == 40);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_names_like_kernel() {
        assert_eq!(Comm::new("a name of seventeen").text(), "a name of seven");
        assert_eq!(Comm::new("fourteen bytes\u{e9}").text(), "fourteen bytes", "no half character");
        assert_eq!(Comm::from_bytes(*b"sh\0ell of before"), Comm::new("sh"));
        assert_eq!(Comm::from_bytes(*b"\xff bytes of sixte").text(), "\u{fffd} bytes of sixte");
        assert!(Comm::default().is_empty() && !Comm::new("sh").is_empty());
    }
}
