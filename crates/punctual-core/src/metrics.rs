//! The layout of the memory in which a running app publishes its metrics to other processes.
//!
//! The app creates an anonymous file named [`NAME`] plus its own name, maps it, and writes its
//! metrics there. A process with access to `/proc/PID/fd` of the app can read it. The file holds a
//! [`Header`], a [`TaskFigures`] for each task, the [`TrafficFigures`] of messages to and from the
//! app, and a JSON text with the properties that do not change during a run: names, levels,
//! periods, and the granted settings.
//!
//! One thread at a time writes each word, with atomic loads and stores, so a reader sees consistent
//! words and delays no thread. The words of one job do not change together: a count may be one job
//! ahead of a histogram. Times are in ns.
//!
//! Most jobs start at their release and run to their end undisturbed, so that J is 0 and R is C.
//! One quantity and one histogram count these jobs, and a reader [adds](Term::combine) them to each
//! term.
//!
//! `punctual` writes this memory and `punctual top` reads it, both with this module.

use core::mem::offset_of;
// Atomics from `core`, not loom: this is a layout.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

pub use buckets::{
    BUCKETS, COARSE_BUCKETS, bucket_end, bucket_of, coarse_bucket_end, coarse_bucket_of, quantile,
};
pub use quantity::{Histogram, Quantity, Values};

mod buckets;
mod quantity;

/// The prefix of the anonymous file's name.
pub const NAME: &str = "punctual:";

/// The first word, once the rest of the header is written.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"PunctMet");

/// The version of the layout and of the text. Incremented with each change to either.
pub const VERSION: u32 = 5;

/// The period at which a running app updates [`Header::updated`], in ns. Metrics not updated for
/// two periods are stale.
pub const UPDATE_PERIOD: u64 = 250_000_000;

/// The maximum number of [`TrafficFigures`].
pub const MAX_TRAFFIC: usize = 32;

/// The longest name in [`TrafficFigures`], in bytes.
pub const MAX_TRAFFIC_NAME: usize = 64;

/// The start of the memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The number of tasks.
    pub tasks: AtomicU32,
    /// The offset of the first [`TaskFigures`], in bytes.
    pub tasks_at: AtomicU64,
    /// The distance from one [`TaskFigures`] to the next, in bytes.
    pub stride: AtomicU64,
    /// The offset of the text, in bytes.
    pub text_at: AtomicU64,
    /// Its length in bytes.
    pub text_len: AtomicU64,
    /// The offset of the first of [`MAX_TRAFFIC`] [`TrafficFigures`], in bytes.
    pub traffic_at: AtomicU64,
    /// The number of entries that have a name. Grows during a run.
    pub traffic: AtomicU64,
    /// The process, in its own PID namespace.
    pub process: AtomicU64,
    /// The start time of the app on `CLOCK_MONOTONIC`; 0 before the end of `init`.
    pub started: AtomicU64,
    /// The time of the last update by a thread without a real-time policy, on `CLOCK_MONOTONIC`.
    pub updated: AtomicU64,
    /// 1 when the app is stopping.
    pub stopping: AtomicU64,
    /// The number of jobs that were released but never run.
    pub dropped: AtomicU64,
    /// The number of starts of helper processes.
    pub helper_starts: AtomicU64,
    /// The number of their ends that the app had not requested.
    pub helper_ends: AtomicU64,
}

/// The figures of a task. All zero at the start of a run.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TaskFigures {
    /// The number of completed jobs.
    pub jobs: AtomicU64,
    /// The number of jobs that ended after their deadline.
    pub misses: AtomicU64,
    /// The number of jobs that suspended themselves.
    pub suspended: AtomicU64,
    /// The longest time for which such a job was off its CPU.
    pub suspension_max: AtomicU64,
    /// R, which is C, of the jobs that started at their release and were neither preempted nor
    /// suspended. The other quantities leave these jobs out: see [`Term::combine`]. `last` is one
    /// more than the R of the task's last job, or 0 if that job is not one of them.
    pub undisturbed: Quantity,
    /// Release jitter J.
    pub jitter: Quantity,
    /// Response time R.
    pub response: Quantity,
    /// Execution time C: start to end, excluding preempting jobs and the job's own suspensions.
    pub execution: Quantity,
    /// Counters that jobs do not write, on their own cache line.
    pub occasional: Occasional,
    /// Of release jitter.
    pub jitters: Histogram,
    /// Of response times.
    pub responses: Histogram,
    /// Of execution times.
    pub executions: Histogram,
    /// Of the jobs of [`undisturbed`](Self::undisturbed).
    pub undisturbed_times: Histogram,
}

impl TaskFigures {
    /// Adds a job with these J, R and C, in ns, which misses its deadline if R is longer than
    /// `max_response`. A job that suspended itself was off its CPU for `suspension`, in ns. Never
    /// loses a value.
    ///
    /// Real-time safety: loads and stores.
    ///
    /// # Safety
    /// No other thread writes the figures of jobs during the call.
    #[inline]
    pub unsafe fn record(&self, terms: [u64; 3], suspension: Option<u64>, max_response: u64) {
        if let Some(time) = suspension {
            self.record_suspension(time);
        }
        let [jitter, response, execution] = terms;
        if jitter == 0 && execution == response {
            // SAFETY: by this function's contract.
            return unsafe { self.record_undisturbed(response, max_response) };
        }
        self.record_end(response, max_response);
        // SAFETY: by this function's contract.
        unsafe { self.record_disturbed(jitter, response, execution) };
    }

    /// [`record`](Self::record) of a job whose J is 0, and whose R and C are `response`: a job that
    /// runs as a call starts when it is released, and unless it is preempted, its response time is
    /// its execution time.
    ///
    /// Real-time safety: loads and stores.
    ///
    /// # Safety
    /// As for [`record`](Self::record).
    #[inline(always)]
    pub unsafe fn record_undisturbed(&self, response: u64, max_response: u64) {
        self.record_end(response, max_response);
        self.undisturbed.last.store(response.saturating_add(1), Relaxed);
        // SAFETY: by this function's contract.
        unsafe { self.undisturbed.add(response) };
        self.record_undisturbed_time(bucket_of(response));
    }

    /// Counts a job, and whether it missed its deadline.
    #[inline(always)]
    fn record_end(&self, response: u64, max_response: u64) {
        if response > max_response {
            add_one(&self.misses);
        }
        add_one(&self.jobs);
    }

    /// Adds a job that suspended itself and was off its CPU for `time` ns.
    #[cold]
    #[inline(never)]
    fn record_suspension(&self, time: u64) {
        add_one(&self.suspended);
        self.suspension_max.store(self.suspension_max.load(Relaxed).max(time), Relaxed);
    }

    /// Counts a job in a bucket of [`undisturbed_times`](Self::undisturbed_times).
    #[inline(always)]
    fn record_undisturbed_time(&self, bucket: usize) {
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        self.undisturbed_times.record(bucket);
        // As in `quantity::add_overflows`, with the address in one operand.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let count = &self.undisturbed_times.0[bucket];
            // SAFETY: as in `quantity::add_overflows`, and this is the address of that count.
            unsafe {
                core::arch::asm!(
                    "inc dword ptr [{figures} + {bucket} * 4 + {times}]",
                    "jz {overflows}",
                    figures = in(reg) self,
                    bucket = in(reg) bucket,
                    times = const offset_of!(TaskFigures, undisturbed_times),
                    overflows = label {
                        // As in `Quantity::add`.
                        count.store(u32::MAX, Relaxed);
                    },
                    options(nostack),
                );
            }
        }
    }

    /// Adds J, R and C of another job.
    ///
    /// # Safety
    /// As for [`record`](Self::record).
    #[inline(never)]
    unsafe fn record_disturbed(&self, jitter: u64, response: u64, execution: u64) {
        self.undisturbed.last.store(0, Relaxed);
        // SAFETY: by this function's contract.
        unsafe {
            self.jitter.record(jitter);
            self.response.record(response);
            self.execution.record(execution);
        }
        self.jitters.record(bucket_of(jitter));
        self.responses.record(bucket_of(response));
        self.executions.record(bucket_of(execution));
    }

    /// Returns the quantity and the histogram of a term, without the undisturbed jobs.
    pub fn of_term(&self, term: Term) -> (&Quantity, &Histogram) {
        match term {
            Term::Jitter => (&self.jitter, &self.jitters),
            Term::Response => (&self.response, &self.responses),
            Term::Execution => (&self.execution, &self.executions),
        }
    }
}

/// Adds 1 to a count that no other thread writes concurrently.
#[inline]
fn add_one(count: &AtomicU64) {
    count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Counters that an ordinary thread of the app writes a few times per second.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Occasional {
    /// The number of releases that found the previous job unfinished.
    pub overruns: AtomicU64,
    /// The number of early releases.
    pub early: AtomicU64,
    /// The number of jobs released by an idle event source.
    pub idle_releases: AtomicU64,
}

/// A figure of a task that is one number: a count, or the maximum over what a count counts.
///
/// JSON, tables and the exporter of `punctual top` iterate over [`Figure::ALL`]. A further figure
/// needs a field of [`TaskFigures`] or [`Occasional`], a row here, and the statement that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// [`TaskFigures::jobs`].
    Jobs,
    /// [`TaskFigures::misses`].
    Misses,
    /// [`TaskFigures::suspended`].
    Suspended,
    /// [`TaskFigures::suspension_max`].
    SuspensionMax,
    /// [`Occasional::overruns`].
    Overruns,
    /// [`Occasional::early`].
    Early,
    /// [`Occasional::idle_releases`].
    IdleReleases,
}

/// Row of the table of [`Figure`]s.
#[derive(Debug, Clone, Copy)]
pub struct FigureRow {
    /// Key in JSON.
    pub key: &'static str,
    /// Name of the metric, without prefix and unit.
    pub metric: &'static str,
    /// Description of the metric.
    pub help: &'static str,
    /// Offset of its word in [`TaskFigures`], in bytes.
    pub offset: usize,
    /// True if jobs write it: it is unknown for tasks that are not measured.
    pub of_jobs: bool,
    /// True if it should be zero.
    pub is_fault: bool,
    /// For a maximum, in ns: the count of the values that it covers.
    pub maximum_of: Option<Figure>,
    /// Noun for a line below the table, for a figure without a column.
    pub noun: Option<&'static str>,
}

impl Figure {
    /// All figures.
    pub const ALL: [Self; 7] = [
        Self::Jobs,
        Self::Misses,
        Self::Suspended,
        Self::SuspensionMax,
        Self::Overruns,
        Self::Early,
        Self::IdleReleases,
    ];

    /// Returns its row of the table.
    pub const fn row(self) -> FigureRow {
        const OCCASIONAL: usize = offset_of!(TaskFigures, occasional);
        match self {
            Self::Jobs => {
                FigureRow::new("jobs", "jobs", offset_of!(TaskFigures, jobs), "Jobs that have ended.")
            }
            Self::Misses => FigureRow {
                is_fault: true,
                ..FigureRow::new(
                    "misses",
                    "deadline_misses",
                    offset_of!(TaskFigures, misses),
                    "Jobs that ended after their deadline.",
                )
            },
            Self::Suspended => FigureRow::new(
                "suspended",
                "self_suspensions",
                offset_of!(TaskFigures, suspended),
                "Jobs that suspended themselves.",
            ),
            Self::SuspensionMax => FigureRow {
                maximum_of: Some(Self::Suspended),
                ..FigureRow::new(
                    "suspension_max",
                    "suspension_max",
                    offset_of!(TaskFigures, suspension_max),
                    "The longest time that a job which suspended itself was off its CPU.",
                )
            },
            Self::Overruns => FigureRow {
                of_jobs: false,
                is_fault: true,
                ..FigureRow::new(
                    "overruns",
                    "overruns",
                    OCCASIONAL + offset_of!(Occasional, overruns),
                    "Releases that found the previous job unfinished.",
                )
            },
            Self::Early => FigureRow {
                of_jobs: false,
                noun: Some("early release"),
                ..FigureRow::new(
                    "early",
                    "early_releases",
                    OCCASIONAL + offset_of!(Occasional, early),
                    "Releases less than the minimum inter-arrival time apart.",
                )
            },
            Self::IdleReleases => FigureRow {
                of_jobs: false,
                noun: Some("release by an idle source"),
                ..FigureRow::new(
                    "idle_releases",
                    "idle_releases",
                    OCCASIONAL + offset_of!(Occasional, idle_releases),
                    "Jobs released by an idle event source.",
                )
            },
        }
    }
}

impl FigureRow {
    const fn new(key: &'static str, metric: &'static str, offset: usize, help: &'static str) -> Self {
        Self { key, metric, help, offset, of_jobs: true, is_fault: false, maximum_of: None, noun: None }
    }
}

/// A quantity that each job has, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Release to start.
    Jitter,
    /// Release to end.
    Response,
    /// Start to end, without preemption and suspension.
    Execution,
}

/// Row of the table of [`Term`]s.
#[derive(Debug, Clone, Copy)]
pub struct TermRow {
    /// Letter of response-time analysis.
    pub letter: &'static str,
    /// Name.
    pub name: &'static str,
    /// Key in JSON.
    pub key: &'static str,
    /// Name of the metric, without prefix and unit.
    pub metric: &'static str,
    /// Description of the metric.
    pub help: &'static str,
    /// Offset of its [`Quantity`] in [`TaskFigures`], in bytes.
    pub offset: usize,
    /// Offset of its [`Histogram`].
    pub histogram: usize,
}

impl Term {
    /// All terms.
    pub const ALL: [Self; 3] = [Self::Jitter, Self::Response, Self::Execution];

    /// Returns the values of this term over all jobs: `own` is its quantity, and `undisturbed` is
    /// [`TaskFigures::undisturbed`].
    pub fn combine(self, own: Values, undisturbed: Values) -> Values {
        let of_undisturbed = |value| if self == Self::Jitter { 0 } else { value };
        Values {
            last: undisturbed.last.checked_sub(1).map_or(own.last, of_undisturbed),
            max: own.max.max(of_undisturbed(undisturbed.max)),
            sum: own.sum.saturating_add(of_undisturbed(undisturbed.sum)),
        }
    }

    /// Returns the count of a bucket over all jobs: `own` is that of the term's histogram, and
    /// `undisturbed` returns those of [`TaskFigures::undisturbed_times`].
    pub fn combine_count(self, bucket: usize, own: u32, undisturbed: impl Fn(usize) -> u32) -> u32 {
        match (self, bucket) {
            (Self::Jitter, 0) => (0..BUCKETS).map(undisturbed).fold(own, u32::saturating_add),
            (Self::Jitter, _) => own,
            _ => own.saturating_add(undisturbed(bucket)),
        }
    }

    /// Returns its row of the table.
    pub const fn row(self) -> TermRow {
        match self {
            Self::Jitter => TermRow {
                letter: "J",
                name: "release jitter",
                key: "jitter",
                metric: "release_jitter",
                help: "Release to start",
                offset: offset_of!(TaskFigures, jitter),
                histogram: offset_of!(TaskFigures, jitters),
            },
            Self::Response => TermRow {
                letter: "R",
                name: "response time",
                key: "response",
                metric: "response_time",
                help: "Release to end",
                offset: offset_of!(TaskFigures, response),
                histogram: offset_of!(TaskFigures, responses),
            },
            Self::Execution => TermRow {
                letter: "C",
                name: "execution time",
                key: "execution",
                metric: "execution_time",
                help: "Start to end, without preemption and suspension",
                offset: offset_of!(TaskFigures, execution),
                histogram: offset_of!(TaskFigures, executions),
            },
        }
    }
}

/// Messages that ordinary threads of the app carry in or out: those of a topic, or into a
/// recording.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TrafficFigures {
    /// The name in UTF-8, followed by zeros.
    pub name: [AtomicU8; MAX_TRAFFIC_NAME],
    /// The number of messages carried.
    pub carried: AtomicU64,
    /// The number of messages lost in transit.
    pub lost: AtomicU64,
    /// The number of messages received and rejected.
    pub refused: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undisturbed_job_counts_in_every_term() {
        let own = Values { last: 3, max: 30, sum: 300 };
        let undisturbed = Values { last: 5 + 1, max: 50, sum: u64::MAX };
        let combined = |last, max, sum| Values { last, max, sum };
        assert_eq!(Term::Jitter.combine(own, undisturbed), combined(0, 30, 300));
        assert_eq!(Term::Response.combine(own, undisturbed), combined(5, 50, u64::MAX));
        let earlier = Values { last: 0, max: 20, sum: 1 };
        assert_eq!(Term::Jitter.combine(own, earlier), combined(3, 30, 300));
        assert_eq!(Term::Execution.combine(own, earlier), combined(3, 30, 301));
        let undisturbed = |bucket: usize| [5_u32, 1].get(bucket).copied().unwrap_or(0);
        let count = |term: Term, bucket, own| term.combine_count(bucket, own, undisturbed);
        assert_eq!([count(Term::Jitter, 0, 10), count(Term::Jitter, 1, 20)], [16, 20]);
        assert_eq!([count(Term::Response, 0, 10), count(Term::Execution, 1, 20)], [15, 21]);
        assert_eq!([count(Term::Jitter, 0, u32::MAX), count(Term::Execution, 0, u32::MAX)], [u32::MAX; 2]);
    }

    #[test]
    fn last_job_is_undisturbed_one_or_not() {
        // SAFETY: zero is a valid value of an atomic.
        let figures = unsafe { Box::<TaskFigures>::new_zeroed().assume_init() };
        let last =
            |term: Term| term.combine(figures.of_term(term).0.into(), (&figures.undisturbed).into()).last;
        // SAFETY: a single thread.
        unsafe { figures.record_undisturbed(0, 0) };
        assert_eq!(Term::ALL.map(last), [0, 0, 0]);
        // SAFETY: a single thread.
        unsafe { figures.record_disturbed(1, 8, 6) };
        assert_eq!(Term::ALL.map(last), [1, 8, 6]);
        // SAFETY: a single thread.
        unsafe { figures.record_undisturbed(4, 4) };
        assert_eq!(Term::ALL.map(last), [0, 4, 4]);
    }

    #[test]
    fn full_count_and_sum_stay() {
        // SAFETY: zero is a valid value of an atomic.
        let figures = unsafe { Box::<TaskFigures>::new_zeroed().assume_init() };
        figures.undisturbed_times.0[bucket_of(9)].store(u32::MAX, Relaxed);
        figures.undisturbed.sum.store(u64::MAX - 8, Relaxed);
        // SAFETY: a single thread.
        unsafe { figures.record_undisturbed(9, 9) };
        assert_eq!(figures.undisturbed_times.0[bucket_of(9)].load(Relaxed), u32::MAX);
        assert_eq!(Values::from(&figures.undisturbed), Values { last: 10, max: 9, sum: u64::MAX });
    }

    #[test]
    fn metrics_fill_whole_cache_lines() {
        assert_eq!(
            (size_of::<TaskFigures>() % 64, core::mem::offset_of!(TaskFigures, occasional) % 64),
            (0, 0)
        );
    }
}
