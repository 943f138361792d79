//! Limits of a recording.
//!
//! The absence of an event means that it did not happen only if it would have been recorded.
//! [`Config::recorded`](crate::jobs::Config::recorded) declares the recorded events to a
//! decomposition, which draws no conclusion from the absence of others: terms that depend on them
//! are unknown, or known only as lower bounds.
//!
//! ```
//! use punctual_trace::recorded::{Recorded, Source};
//!
//! let recorded = Recorded::declared("sched:sched_switch\nsched:sched_waking\nsched:sched_wakeup\n");
//! assert!(recorded.has(Source::Wakings) && !recorded.has(Source::Futexes));
//! assert!(recorded.missing().iter().any(|missing| missing.what == "futex calls"));
//! ```

mod chosen;

use punctual_report::format::format_count;

pub(crate) use self::chosen::Chosen;

use crate::event::{Event, Kind, Tid};
use crate::format::recipe::{Code, recipe};

/// Events that are useful only together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `sched_switch`.
    Switches,
    /// `sched_waking`: the start of a wake-up.
    Wakings,
    /// `sched_wakeup`: the thread has been put into a run queue.
    Wakeups,
    /// `sched_migrate_task`.
    Migrations,
    /// `sched_pi_setprio`.
    Inheritance,
    /// `irq_handler_entry` and `irq_handler_exit`.
    Interrupts,
    /// Entries and exits of the group `irq_vectors`, which exists only on x86.
    Vectors,
    /// `softirq_entry` and `softirq_exit`.
    Softirqs,
    /// `hrtimer_start`, `hrtimer_expire_entry` and `hrtimer_expire_exit`.
    Timers,
    /// `contention_begin` and `contention_end`.
    Contention,
    /// `sys_enter_futex` and `sys_exit_futex`.
    Futexes,
    /// Entry and exit of the scheduler.
    Scheduler,
    /// `sys_enter_sched_yield` and `sys_exit_sched_yield`, which end jobs of SCHED_DEADLINE
    /// threads.
    Yields,
}

impl Source {
    const ALL: [Self; 13] = [
        Self::Switches,
        Self::Wakings,
        Self::Wakeups,
        Self::Migrations,
        Self::Inheritance,
        Self::Interrupts,
        Self::Vectors,
        Self::Softirqs,
        Self::Timers,
        Self::Contention,
        Self::Futexes,
        Self::Scheduler,
        Self::Yields,
    ];

    /// Returns the kinds of events that the source requires.
    fn kinds(self) -> u32 {
        match self {
            Self::Switches => SWITCH,
            Self::Wakings => WAKING,
            Self::Wakeups => WAKEUP,
            Self::Migrations => MIGRATE,
            Self::Inheritance => INHERIT,
            Self::Interrupts => IRQ_ENTRY | IRQ_EXIT,
            Self::Vectors => VECTOR_ENTRY | VECTOR_EXIT,
            Self::Softirqs => SOFTIRQ_ENTRY | SOFTIRQ_EXIT,
            Self::Timers => TIMER_START | TIMER_EXPIRE | TIMER_EXPIRED,
            Self::Contention => CONTENTION_BEGIN | CONTENTION_END,
            Self::Futexes => FUTEX_ENTER | FUTEX_EXIT,
            Self::Scheduler => SCHEDULE_ENTER | SCHEDULE_EXIT,
            Self::Yields => YIELD_ENTER | YIELD_EXIT,
        }
    }
}

const SWITCH: u32 = 1;
const WAKING: u32 = 1 << 1;
const WAKEUP: u32 = 1 << 2;
const MIGRATE: u32 = 1 << 3;
const INHERIT: u32 = 1 << 4;
const IRQ_ENTRY: u32 = 1 << 5;
const IRQ_EXIT: u32 = 1 << 6;
const VECTOR_ENTRY: u32 = 1 << 7;
const VECTOR_EXIT: u32 = 1 << 8;
const SOFTIRQ_ENTRY: u32 = 1 << 9;
const SOFTIRQ_EXIT: u32 = 1 << 10;
const TIMER_START: u32 = 1 << 11;
const TIMER_EXPIRE: u32 = 1 << 12;
const TIMER_EXPIRED: u32 = 1 << 13;
const CONTENTION_BEGIN: u32 = 1 << 14;
const CONTENTION_END: u32 = 1 << 15;
const FUTEX_ENTER: u32 = 1 << 16;
const FUTEX_EXIT: u32 = 1 << 17;
const SCHEDULE_ENTER: u32 = 1 << 18;
const SCHEDULE_EXIT: u32 = 1 << 19;
const YIELD_ENTER: u32 = 1 << 20;
const YIELD_EXIT: u32 = 1 << 21;

/// One event of each kind.
const EVENTS: [(&str, u32); 22] = [
    ("sched:sched_switch", SWITCH),
    ("sched:sched_waking", WAKING),
    ("sched:sched_wakeup", WAKEUP),
    ("sched:sched_migrate_task", MIGRATE),
    ("sched:sched_pi_setprio", INHERIT),
    ("irq:irq_handler_entry", IRQ_ENTRY),
    ("irq:irq_handler_exit", IRQ_EXIT),
    ("irq_vectors:local_timer_entry", VECTOR_ENTRY),
    ("irq_vectors:local_timer_exit", VECTOR_EXIT),
    ("irq:softirq_entry", SOFTIRQ_ENTRY),
    ("irq:softirq_exit", SOFTIRQ_EXIT),
    ("timer:hrtimer_start", TIMER_START),
    ("timer:hrtimer_expire_entry", TIMER_EXPIRE),
    ("timer:hrtimer_expire_exit", TIMER_EXPIRED),
    ("lock:contention_begin", CONTENTION_BEGIN),
    ("lock:contention_end", CONTENTION_END),
    ("syscalls:sys_enter_futex", FUTEX_ENTER),
    ("syscalls:sys_exit_futex", FUTEX_EXIT),
    ("punctual:schedule_enter", SCHEDULE_ENTER),
    ("punctual:schedule_exit", SCHEDULE_EXIT),
    ("syscalls:sys_enter_sched_yield", YIELD_ENTER),
    ("syscalls:sys_exit_sched_yield", YIELD_EXIT),
];

/// Prefix in a declaration of the threads whose system calls alone are recorded.
const CALLS: &str = "calls of";

/// Threads whose system calls are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Calls {
    /// All threads.
    All,
    /// These threads and their descendants, and others known from a recorded call.
    Of(Vec<Tid>),
}

/// The kinds of events that a recording would contain if they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    kinds: u32,
    calls: Calls,
    /// Threads whose switches and wake-ups are recorded, if not all.
    switches: Option<Chosen>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self::all()
    }
}

/// A gap in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Missing events.
    pub what: &'static str,
    /// Consequence for the terms.
    pub meaning: &'static str,
}

impl Recorded {
    /// Returns a recording of all events.
    #[must_use]
    pub fn all() -> Self {
        Self { kinds: u32::MAX, calls: Calls::All, switches: None }
    }

    /// Returns a recording of no events.
    #[must_use]
    pub fn none() -> Self {
        Self { kinds: 0, calls: Calls::All, switches: None }
    }

    /// Parses the declaration of a recorder: a line `group:event` for each event. A line `calls of`
    /// limits system calls to the listed threads and their descendants. Lines `switches of`,
    /// `switches named` and `switches at` limit switches and wake-ups to the threads with these
    /// IDs, names or priorities, as the kernel counts; `switches followed` adds their descendants.
    #[must_use]
    pub fn declared(text: &str) -> Self {
        let mut recorded = Self::none();
        for line in text.lines() {
            if let Some(threads) = line.strip_prefix(CALLS) {
                let threads = threads.split_whitespace().filter_map(|number| number.parse().ok());
                recorded.calls = Calls::Of(threads.collect());
            } else if Chosen::read(&mut recorded.switches, line) {
                // It names threads.
            } else if let Some((system, name)) = line.trim().split_once(':') {
                recorded.kinds |= kind_of_event(system, name);
            }
        }
        recorded
    }

    /// Returns the text that [`declared`](Self::declared) parses.
    pub(crate) fn declaration<'a>(
        events: impl IntoIterator<Item = &'a str>,
        calls_of: Option<&[Tid]>,
    ) -> String {
        let mut text: String = events.into_iter().map(|event| format!("{event}\n")).collect();
        if let Some(threads) = calls_of {
            text += CALLS;
            threads.iter().for_each(|thread| text += &format!(" {thread}"));
            text.push('\n');
        }
        text
    }

    /// Adds the kind of an event that the recording contains.
    #[inline]
    pub fn see(&mut self, event: &Event) {
        self.kinds |= kind_bit(event.kind);
    }

    /// Returns whether it has all events of a source.
    #[must_use]
    pub fn has(&self, source: Source) -> bool {
        self.kinds & source.kinds() == source.kinds()
    }

    /// Returns this set plus the events of a source.
    #[must_use]
    pub fn with(mut self, source: Source) -> Self {
        self.kinds |= source.kinds();
        self
    }

    /// Returns this set without the events of a source.
    #[must_use]
    pub fn without(mut self, source: Source) -> Self {
        self.kinds &= !source.kinds();
        self
    }

    /// Returns this set for programs without futex locks, in which unrecorded futex calls hide
    /// nothing: see [`FutexWaits::Suspend`](crate::jobs::FutexWaits::Suspend).
    #[must_use]
    pub fn without_futex_locks(mut self) -> Self {
        self.calls = Calls::All;
        self.with(Source::Futexes)
    }

    /// Returns the intersection with `other`, whose thread IDs are offset by `higher`.
    pub(crate) fn and(mut self, other: &Self, higher: Tid) -> Self {
        self.kinds &= other.kinds;
        let others = match &other.calls {
            Calls::All => None,
            Calls::Of(threads) => Some(threads.iter().map(|thread| thread.saturating_add(higher))),
        };
        self.calls = match (self.calls, others) {
            (Calls::All, None) => Calls::All,
            // On the machine with all calls, a thread is known only from a recorded call.
            (Calls::All, Some(others)) => Calls::Of(others.collect()),
            (Calls::Of(threads), None) => Calls::Of(threads),
            (Calls::Of(threads), Some(others)) => Calls::Of(threads.into_iter().chain(others).collect()),
        };
        self.switches = Chosen::of_both(self.switches, other.switches.as_ref(), higher);
        self
    }

    /// Returns the text that [`declared`](Self::declared) parses.
    pub(crate) fn text(&self) -> String {
        let has = |(_, kind): &&(&str, u32)| self.kinds & kind != 0;
        let events = EVENTS.iter().filter(has).map(|(event, _)| *event);
        let calls = match &self.calls {
            Calls::All => None,
            Calls::Of(threads) => Some(threads.as_slice()),
        };
        Self::declaration(events, calls) + &self.switches.as_ref().map(Chosen::text).unwrap_or_default()
    }

    /// Returns whether it includes all of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let switches = self.switches.is_none() || self.switches == other.switches;
        switches && Source::ALL.iter().all(|&source| self.has(source) || !other.has(source))
    }

    /// Returns whether it has the context switches of all threads; a narrow recording has those of
    /// the traced ones.
    #[must_use]
    pub fn has_all_switches(&self) -> bool {
        self.has(Source::Switches) && self.switches.is_none()
    }

    /// Returns the threads whose switches and wake-ups are recorded, if not all.
    pub(crate) fn switches_of(&self) -> Option<&Chosen> {
        self.switches.as_ref()
    }

    /// Returns whether only the system calls of some threads are recorded.
    pub(crate) fn calls_of_some(&self) -> bool {
        self.calls != Calls::All
    }

    /// Returns whether the declaration includes the system calls of this thread.
    pub(crate) fn has_calls_of(&self, thread: Tid) -> bool {
        match &self.calls {
            Calls::All => true,
            Calls::Of(threads) => threads.contains(&thread),
        }
    }

    /// Returns the gaps of the recording and their consequences, most severe first.
    #[must_use]
    pub fn missing(&self) -> Vec<Missing> {
        let mut missing = Vec::new();
        let mut add = |what, meaning| missing.push(Missing { what, meaning });
        let handlers = "I is at least what is shown; their time is in C, which is at most what is shown";
        if !self.has(Source::Switches) {
            add("context switches", "there are no jobs of threads");
        } else if self.switches.is_some() {
            add(
                "switches and wake-ups of threads that were not traced",
                "they have no jobs; how long they displaced the others is known, but not which of them did, and nothing of what \
                 they did with locks that others waited for",
            );
        }
        match (self.has(Source::Wakings), self.has(Source::Wakeups)) {
            (true, _) => {}
            (false, true) => add("sched_waking", "R and J are at least what is shown"),
            (false, false) => add("wake-ups", "J of threads is unknown, and R is at least W"),
        }
        if !self.has(Source::Futexes) {
            let meaning = "a wait for a lock of the program looks like the end of a job, so R, W, B and B + I are at \
                           least what is shown, SS and C are unknown, and J too where a thread or a timer woke it; \
                           --futex suspend says that there are no such waits";
            add("futex calls", meaning);
        } else if self.calls_of_some() {
            add(
                "system calls of threads that were not traced",
                "their R, W, B and B + I are at least what is shown, their SS and C unknown, and J too where a thread \
                 or a timer woke them; --futex suspend says that they wait for no locks that way",
            );
        }
        if !self.has(Source::Contention) {
            let meaning = "B is at least what is shown; spinning and the way to a sleep are in C or I, which are at most \
                           what is shown";
            add("contention of kernel locks", meaning);
        }
        for (source, what) in [
            (Source::Interrupts, "interrupts of devices"),
            (Source::Vectors, "interrupts of timers and of other CPUs (irq_vectors)"),
            (Source::Softirqs, "softirqs"),
        ] {
            if !self.has(source) {
                add(what, handlers);
            }
        }
        if !self.has(Source::Timers) {
            let meaning = "R and J of jobs that an interrupt released are at least what is shown: their timer may have been \
                           late";
            add("timers", meaning);
        }
        if !self.has(Source::Inheritance) {
            add("inherited priorities", "who passed a lock on is taken for its holder");
        }
        if !self.has(Source::Migrations) {
            add(
                "migrations",
                "who ran on another CPU than the job's may be missing from the causes of J and I",
            );
        }
        if !self.has(Source::Scheduler) {
            add("entries and returns of the scheduler", "SS and C are known within bounds");
        }
        missing
    }
}

/// "3 297 of 3 724 were understood; not: sys_enter (400), sys_exit (27)"
#[must_use]
pub fn understood(count: u64, skipped: &[(String, u64)]) -> String {
    /// Maximum number of named events.
    const NAMED: usize = 6;
    let rest: u64 = skipped.iter().map(|(_, count)| count).sum();
    let mut text = format!("{} of {} were understood", format_count(count), format_count(count + rest));
    let mut most: Vec<_> = skipped.iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut named: Vec<_> =
        most.iter().take(NAMED).map(|(name, count)| format!("{name} ({})", format_count(*count))).collect();
    if most.len() > NAMED {
        named.push(format!("{} more kinds", most.len() - NAMED));
    }
    if !named.is_empty() {
        text += &format!("; not: {}", named.join(", "));
    }
    text
}

/// Returns the kinds that a kernel event is translated to.
fn kind_of_event(system: &str, name: &str) -> u32 {
    match recipe(system, name).map(|(code, _)| code) {
        Some(Code::Switch) => SWITCH,
        Some(Code::Waking) => WAKING,
        Some(Code::Wakeup) => WAKEUP,
        Some(Code::Migrate) => MIGRATE,
        Some(Code::Inherit) => INHERIT,
        Some(Code::IrqEntry) => IRQ_ENTRY,
        Some(Code::IrqExit) => IRQ_EXIT,
        // The others are rare in comparison.
        Some(Code::VectorEntry) if name == "local_timer_entry" => VECTOR_ENTRY,
        Some(Code::VectorExit) if name == "local_timer_exit" => VECTOR_EXIT,
        Some(Code::SoftirqEntry) => SOFTIRQ_ENTRY,
        Some(Code::SoftirqExit) => SOFTIRQ_EXIT,
        Some(Code::TimerStart) => TIMER_START,
        Some(Code::TimerExpire) => TIMER_EXPIRE,
        Some(Code::TimerExpired) => TIMER_EXPIRED,
        Some(Code::ContentionBegin) => CONTENTION_BEGIN,
        Some(Code::ContentionEnd) => CONTENTION_END,
        Some(Code::FutexEnter) => FUTEX_ENTER,
        Some(Code::FutexExit) => FUTEX_EXIT,
        Some(Code::YieldEnter) => YIELD_ENTER,
        Some(Code::YieldExit) => YIELD_EXIT,
        Some(Code::ScheduleEnter | Code::GraphEntry) => SCHEDULE_ENTER,
        Some(Code::ScheduleExit | Code::GraphExit) => SCHEDULE_EXIT,
        _ => 0,
    }
}

#[inline]
fn kind_bit(kind: Kind) -> u32 {
    match kind {
        Kind::Switch { .. } => SWITCH,
        Kind::Waking { .. } => WAKING,
        Kind::Wakeup { new: false, .. } => WAKEUP,
        Kind::Migrate { .. } => MIGRATE,
        Kind::Inherit { .. } => INHERIT,
        Kind::IrqEntry { .. } => IRQ_ENTRY,
        Kind::IrqExit { .. } => IRQ_EXIT,
        Kind::VectorEntry { .. } => VECTOR_ENTRY,
        Kind::VectorExit { .. } => VECTOR_EXIT,
        Kind::SoftirqEntry { .. } => SOFTIRQ_ENTRY,
        Kind::SoftirqExit { .. } => SOFTIRQ_EXIT,
        Kind::TimerStart { .. } | Kind::BudgetTimerStart { .. } => TIMER_START,
        Kind::TimerExpire { .. } => TIMER_EXPIRE,
        Kind::TimerExpired { .. } => TIMER_EXPIRED,
        Kind::ContentionBegin { .. } => CONTENTION_BEGIN,
        Kind::ContentionEnd { .. } => CONTENTION_END,
        Kind::FutexEnter { .. } => FUTEX_ENTER,
        Kind::FutexExit { .. } => FUTEX_EXIT,
        Kind::YieldEnter => YIELD_ENTER,
        Kind::YieldExit => YIELD_EXIT,
        Kind::ScheduleEnter => SCHEDULE_ENTER,
        Kind::ScheduleExit => SCHEDULE_EXIT,
        _ => 0,
    }
}
