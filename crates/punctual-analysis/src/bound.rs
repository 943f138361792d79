//! Results of the analysis: a bound with its terms, or the reason for a missing bound.
//!
//! Time is continuous, and every response is measured from the nominal release, so it includes the
//! task's own release jitter. A bound is the least upper bound of the responses of its model. With
//! blocking it is approached but not attained, because the blocking job must have started just
//! before.

use std::fmt::{self, Display, Formatter};

use crate::chain::reaction;
use crate::fraction::Fraction;
use crate::time::Nanos;

/// Bounds of all tasks of a system.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// One outcome per task, in the order of the system's tasks.
    pub tasks: Vec<Outcome>,
}

/// Outcome for one task.
pub type Outcome = Result<Bound, NoBound>;

/// Bound on the response of every job of a task.
///
/// [`response`](Self::response) = [`jitter`](Self::jitter) + [`window`](Self::window) −
/// [`released`](Self::released), and `window` is the sum of all other terms. Times are in ns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// R, from the nominal release to the end.
    pub response: Nanos,
    /// J of the task itself.
    pub jitter: Nanos,
    /// Time from the start of the worst busy window to the end of the job.
    pub window: Nanos,
    /// Time from the start of the window until the job became ready.
    pub released: Nanos,
    /// B, caused by a job of a lower level; `None` if nothing can block the task.
    pub blocking: Option<Blocking>,
    /// The job itself and earlier jobs of its task in the window.
    pub own: Work,
    /// The part of `own` spent spinning for resources of other partitions.
    pub spinning: Nanos,
    /// The part of `own` during which the job suspends itself.
    pub suspension: Nanos,
    /// I by source, highest level first.
    pub interference: Vec<Interference>,
    /// Time during which the CPU was not supplied to the partition.
    pub not_supplied: Nanos,
    /// Exact if a job with this response can occur.
    pub exactness: Exactness,
    /// The bound that ignores offsets, if offsets shortened it.
    pub without_offsets: Option<Nanos>,
    /// For a spawned task, the latest end after the nominal release of the task at the root of the
    /// spawns. `None` if there are several roots, or other tasks at its level.
    pub since_root: Option<Nanos>,
}

/// A number of jobs and the time that they take, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Number of jobs.
    pub jobs: u64,
    /// Total execution time.
    pub execution: Nanos,
    /// Total cost of starting, ending and preempting.
    pub overhead: Nanos,
}

impl Work {
    /// Returns execution time plus overhead.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.execution.saturating_add(self.overhead)
    }
}

/// Source of interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interferer {
    /// A task of a higher level, by index.
    Higher(usize),
    /// A task of the same level, served in FIFO order, by index.
    Peer(usize),
    /// A source above all levels, by index.
    Interrupt(usize),
    /// The kernel's work to release jobs of a task of any level, by index.
    Release(usize),
}

/// Contribution of one source to I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interference {
    /// The source.
    pub who: Interferer,
    /// Its jobs and their time.
    pub work: Work,
}

/// Blocking by a job of a lower level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocking {
    /// Total blocking time B, in ns.
    pub time: Nanos,
    /// Number of blockings per job: one, plus one after each self-suspension.
    pub times: u64,
    /// The blocking task, by index; `None` for `idle`.
    pub by: Option<usize>,
    /// The resource held, by index; `None` for the CPU itself, held by a job that cannot be
    /// preempted.
    pub resource: Option<usize>,
    /// The part of one blocking spent spinning, in ns.
    pub spinning: Nanos,
}

/// Tightness of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exactness {
    /// The model has a job with this response.
    Exact,
    /// No job has a longer response, but possibly none has this one.
    #[default]
    Sufficient,
}

/// Reason why a task has no bound.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NoBound {
    /// The task and the sources that preempt it need more than the CPU supplies.
    Overload {
        /// The tasks that contribute, by index, highest level first.
        tasks: Vec<usize>,
        /// Utilization that they need.
        utilization: Fraction,
        /// Utilization that the CPU supplies.
        supply: Fraction,
    },
    /// The task executes and suspends itself for longer than its period and its displacement allow.
    ///
    /// Its suspension counts as execution of the task itself, but not as a demand on the CPU.
    Suspension {
        /// The tasks that displace it, by index, highest level first.
        displacing: Vec<usize>,
        /// Execution and suspension of the task, relative to its period.
        own: Fraction,
        /// Utilization of the tasks that displace it.
        displacement: Fraction,
    },
    /// The bound depends on a task, by index, without a bound.
    DependsOn(usize),
    /// The model does not limit how often the task is released.
    NoArrivals,
    /// The computation exceeds its step limit, because almost all of the CPU is used.
    TooLong,
    /// No published analysis applies to the executor, for this reason.
    NoAnalysis(String),
}

/// Formats the reason in general terms; [`explain`](crate::explain) names the tasks.
impl Display for NoBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload { .. } => {
                f.write_str("the task and what displaces it need more time than there is")
            }
            Self::Suspension { .. } => {
                f.write_str("the task executes and waits for longer than its period allows")
            }
            Self::DependsOn(_) => f.write_str("the task depends on one that has no bound"),
            Self::NoArrivals => f.write_str("the release rate of the task is unknown"),
            Self::TooLong => {
                f.write_str("the bound is too long to be computed: almost all of the CPU is used")
            }
            Self::NoAnalysis(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoBound {}

impl Bound {
    /// Returns whether every job meets the deadline; `None` is always met.
    #[must_use]
    pub fn meets(&self, deadline: Option<Nanos>) -> bool {
        deadline.is_none_or(|deadline| self.response <= deadline)
    }

    /// Returns the sum of all terms of the window, which equals `window`.
    #[must_use]
    pub fn sum_of_terms(&self) -> Nanos {
        let blocking = self.blocking.map_or(0, |blocking| blocking.time);
        let interference: Nanos = self.interference.iter().map(|term| term.work.time()).sum();
        blocking + self.own.time() + interference + self.not_supplied
    }
}

impl Analysis {
    /// Returns whether every job of every task with a deadline, and every chain, meets its
    /// deadline.
    #[must_use]
    pub fn is_schedulable(&self, system: &crate::system::System) -> bool {
        let mut tasks = self.tasks.iter().zip(&system.tasks);
        let in_time = |chain: &crate::system::Chain| {
            chain.deadline.is_none_or(|deadline| reaction(system, self, chain).is_ok_and(|it| it <= deadline))
        };
        system.chains.iter().all(in_time)
            && tasks.all(|(outcome, task)| match outcome {
                Ok(bound) => bound.meets(task.deadline),
                Err(_) => task.deadline.is_none(),
            })
    }
}
