//! What a recording can tell.
//!
//! That an event is not in a recording means that it did not happen only if it would have been recorded. A decomposition
//! is told what would, by [`Config::recorded`](crate::jobs::Config::recorded), and does not take the absence of the rest for
//! anything: terms that depend on it are unknown, or known to be at least so much.
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
use crate::read::translate::{Code, recipe};

/// Events that belong together, because one without the other says little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `sched_switch`.
    Switches,
    /// `sched_waking`: when a wake-up begins.
    Wakings,
    /// `sched_wakeup`: when it has put the thread into a run queue.
    Wakeups,
    /// `sched_migrate_task`.
    Migrations,
    /// `sched_pi_setprio`.
    Inheritance,
    /// `irq_handler_entry` and `irq_handler_exit`.
    Interrupts,
    /// Entries and exits of the group `irq_vectors`, which only x86 has.
    Vectors,
    /// `softirq_entry` and `softirq_exit`.
    Softirqs,
    /// `hrtimer_start`, `hrtimer_expire_entry` and `hrtimer_expire_exit`.
    Timers,
    /// `contention_begin` and `contention_end`.
    Contention,
    /// `sys_enter_futex` and `sys_exit_futex`.
    Futexes,
    /// When the scheduler is entered and left.
    Scheduler,
    /// `sys_enter_sched_yield` and `sys_exit_sched_yield`, which end jobs of SCHED_DEADLINE threads.
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

    /// The kinds of events that it needs, all of them.
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

/// An event of each kind.
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

/// In the text of a declaration, what the threads follow whose system calls alone are recorded.
const CALLS: &str = "calls of";

/// Whose system calls are in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Calls {
    /// Everybody's.
    All,
    /// Those of these threads and of what they start, and of others that show by a call.
    Of(Vec<Tid>),
}

/// The kinds of events that a recording has, if they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    kinds: u32,
    calls: Calls,
    /// Whose switches and wake-ups are there, if not everybody's.
    switches: Option<Chosen>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self::all()
    }
}

/// What is not in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// What.
    pub what: &'static str,
    /// What that means for the terms.
    pub meaning: &'static str,
}

impl Recorded {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self { kinds: u32::MAX, calls: Calls::All, switches: None }
    }

    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self { kinds: 0, calls: Calls::All, switches: None }
    }

    /// What a recorder has declared: a line for each event, `group:event`. A line `calls of` says that system calls are
    /// those of the threads with the numbers behind it and of what they start. Lines `switches of`, `switches named` and
    /// `switches at` say that switches and wake-ups are those of the threads with these numbers, names or priorities, as the
    /// kernel counts, and `switches followed` that they are those of what they start as well.
    #[must_use]
    pub fn declared(text: &str) -> Self {
        let mut recorded = Self::none();
        for line in text.lines() {
            if let Some(threads) = line.strip_prefix(CALLS) {
                let threads = threads.split_whitespace().filter_map(|number| number.parse().ok());
                recorded.calls = Calls::Of(threads.collect());
            } else if Chosen::read(&mut recorded.switches, line) {
                // It says whose.
            } else if let Some((system, name)) = line.trim().split_once(':') {
                recorded.kinds |= kind_of_event(system, name);
            }
        }
        recorded
    }

    /// The text that [`declared`](Self::declared) reads.
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

    /// Adds the kind of an event that is in the recording.
    #[inline]
    pub fn see(&mut self, event: &Event) {
        self.kinds |= kind_bit(event.kind);
    }

    /// Whether it has all events of a source.
    #[must_use]
    pub fn has(&self, source: Source) -> bool {
        self.kinds & source.kinds() == source.kinds()
    }

    /// The same with the events of a source.
    #[must_use]
    pub fn with(mut self, source: Source) -> Self {
        self.kinds |= source.kinds();
        self
    }

    /// The same without the events of a source.
    #[must_use]
    pub fn without(mut self, source: Source) -> Self {
        self.kinds &= !source.kinds();
        self
    }

    /// The same if no thread waits for a lock by a futex call, so that calls that are not recorded hide nothing: see
    /// [`FutexWaits::Suspend`](crate::jobs::FutexWaits::Suspend).
    #[must_use]
    pub fn without_futex_locks(mut self) -> Self {
        self.calls = Calls::All;
        self.with(Source::Futexes)
    }

    /// What both have, where those of `other` have numbers of threads higher by that.
    pub(crate) fn and(mut self, other: &Self, higher: Tid) -> Self {
        self.kinds &= other.kinds;
        let others = match &other.calls {
            Calls::All => None,
            Calls::Of(threads) => Some(threads.iter().map(|thread| thread.saturating_add(higher))),
        };
        self.calls = match (self.calls, others) {
            (Calls::All, None) => Calls::All,
            // Of the machine with all calls nothing more can be said than that they show by a call.
            (Calls::All, Some(others)) => Calls::Of(others.collect()),
            (Calls::Of(threads), None) => Calls::Of(threads),
            (Calls::Of(threads), Some(others)) => Calls::Of(threads.into_iter().chain(others).collect()),
        };
        self.switches = Chosen::of_both(self.switches, other.switches.as_ref(), higher);
        self
    }

    /// The text that [`declared`](Self::declared) reads.
    pub(crate) fn text(&self) -> String {
        let has = |(_, kind): &&(&str, u32)| self.kinds & kind != 0;
        let events = EVENTS.iter().filter(has).map(|(event, _)| *event);
        let calls = match &self.calls {
            Calls::All => None,
            Calls::Of(threads) => Some(threads.as_slice()),
        };
        Self::declaration(events, calls) + &self.switches.as_ref().map(Chosen::text).unwrap_or_default()
    }

    /// Whether everything in `other` is in it.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let switches = self.switches.is_none() || self.switches == other.switches;
        switches && Source::ALL.iter().all(|&source| self.has(source) || !other.has(source))
    }

    /// Whether it has the context switches of all threads: a narrow recording has those of the traced ones.
    #[must_use]
    pub fn has_all_switches(&self) -> bool {
        self.has(Source::Switches) && self.switches.is_none()
    }

    /// Whose switches and wake-ups are recorded, if not everybody's.
    pub(crate) fn switches_of(&self) -> Option<&Chosen> {
        self.switches.as_ref()
    }

    /// Whether the system calls of some threads only are recorded.
    pub(crate) fn calls_of_some(&self) -> bool {
        self.calls != Calls::All
    }

    /// Whether the system calls of this thread are recorded, as far as the declaration says.
    pub(crate) fn has_calls_of(&self, thread: Tid) -> bool {
        match &self.calls {
            Calls::All => true,
            Calls::Of(threads) => threads.contains(&thread),
        }
    }

    /// What is not in the recording and what that means, the gravest first.
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
            (false, false) => add("wake-ups", "R and J of threads are unknown"),
        }
        if !self.has(Source::Futexes) {
            let meaning = "a wait for a lock of the program looks like the end of a job, so R, W and I are at least what \
                           is shown, B too, SS and C are unknown, and R and J too where a thread or a timer woke it; \
                           --futex suspend says that there are no such waits";
            add("futex calls", meaning);
        } else if self.calls_of_some() {
            add(
                "system calls of threads that were not traced",
                "their R, W, B and I are at least what is shown, their SS and C unknown, and R and J too where a thread or a \
                 timer woke them; --futex suspend says that they wait for no locks that way",
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
    /// So many are named.
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

/// The kinds of events that an event of the kernel becomes.
fn kind_of_event(system: &str, name: &str) -> u32 {
    match recipe(system, name).map(|(code, _)| code) {
        Some(Code::Switch) => SWITCH,
        Some(Code::Waking) => WAKING,
        Some(Code::Wakeup) => WAKEUP,
        Some(Code::Migrate) => MIGRATE,
        Some(Code::Inherit) => INHERIT,
        Some(Code::IrqEntry) => IRQ_ENTRY,
        Some(Code::IrqExit) => IRQ_EXIT,
        // The others are rare beside it.
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
