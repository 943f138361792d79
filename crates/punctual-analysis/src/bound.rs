//! What an analysis finds: a bound with the terms it is made of, or why there is none.
//!
//! Time is continuous here, and every response is measured from the nominal release, so it includes the task's own release
//! jitter. A bound is the least upper bound of the responses of its model: with blocking it is approached, not attained,
//! since what blocks has to have begun just before.

use std::fmt::{self, Display, Formatter};

use crate::chain::reaction;
use crate::fraction::Fraction;
use crate::time::Nanos;

/// Whether tasks have bounds, and which.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// In the order of the system's tasks.
    pub tasks: Vec<Outcome>,
}

/// Of one task.
pub type Outcome = Result<Bound, NoBound>;

/// A bound on the response of every job of a task:
/// [`response`](Self::response) = [`jitter`](Self::jitter) + [`window`](Self::window) − [`released`](Self::released), and
/// `window` is the sum of all other terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// R, from the nominal release to the end.
    pub response: Nanos,
    /// J of the task itself.
    pub jitter: Nanos,
    /// From the start of the worst busy window to the end of the job.
    pub window: Nanos,
    /// When the job became ready, after the start of the window.
    pub released: Nanos,
    /// B: what a job of a lower level had begun. None if there is nothing to wait for.
    pub blocking: Option<Blocking>,
    /// The job itself, and earlier ones of its task in the window.
    pub own: Work,
    /// How much of `own` is spinning for resources of other partitions.
    pub spinning: Nanos,
    /// How much of `own` is the job's waiting in the middle.
    pub suspension: Nanos,
    /// What else displaces it, highest first.
    pub interference: Vec<Interference>,
    /// Time in which the CPU was not ours.
    pub not_supplied: Nanos,
    /// Whether a job with this response can occur.
    pub exactness: Exactness,
    /// The bound that ignores offsets, where counting on them has made it shorter.
    pub without_offsets: Option<Nanos>,
    /// Of a task that others spawn: the latest end after the nominal release of the task with which the spawns begin. Not known if
    /// there are several such tasks, or others of its level.
    pub since_root: Option<Nanos>,
}

/// Jobs and their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// How many.
    pub jobs: u64,
    /// Executions of all of them.
    pub execution: Nanos,
    /// What starting and ending them, and preempting by them, costs.
    pub overhead: Nanos,
}

impl Work {
    /// Execution and overhead.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.execution.saturating_add(self.overhead)
    }
}

/// Who displaces a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A task of a higher level, by its index.
    Higher(usize),
    /// A task of the same level, first come, first served.
    Peer(usize),
    /// A source above all levels, by its index.
    Interrupt(usize),
    /// The release of jobs of a task, of any level.
    Release(usize),
}

/// What one source contributes to I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interference {
    /// The source.
    pub who: Who,
    /// How much.
    pub work: Work,
}

/// What is not let go of in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocking {
    /// All of B.
    pub time: Nanos,
    /// How often it may happen to one job: once, and once more after each suspension.
    pub times: u64,
    /// Whose job it is; none is `idle`.
    pub by: Option<usize>,
    /// What it holds; none is the CPU itself, by a job that is not preempted.
    pub resource: Option<usize>,
    /// How much of one blocking is spinning.
    pub spinning: Nanos,
}

/// Whether a bound is attained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exactness {
    /// A job with this response is possible in the model.
    Exact,
    /// No job has a longer response; perhaps none has this one.
    #[default]
    Sufficient,
}

/// Why a task has no bound.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NoBound {
    /// It and what displaces it need more than there is.
    Overload {
        /// The tasks that need it, by index, highest first.
        tasks: Vec<usize>,
        /// What they need.
        utilisation: Fraction,
        /// What there is.
        supply: Fraction,
    },
    /// It depends on a task that has none.
    DependsOn(usize),
    /// Nothing says how often it is released.
    NoArrivals,
    /// It takes longer than can be computed, since almost all of the CPU is used.
    TooLong,
    /// No published analysis fits what the executor does, for this reason.
    NoAnalysis(String),
}

/// In general words; [`explain`](crate::explain) names the tasks.
impl Display for NoBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload { .. } => {
                f.write_str("the task and what displaces it need more time than there is")
            }
            Self::DependsOn(_) => f.write_str("the task depends on one that has no bound"),
            Self::NoArrivals => f.write_str("nothing says how often the task is released"),
            Self::TooLong => {
                f.write_str("the bound is too long to be computed: almost all of the CPU is used")
            }
            Self::NoAnalysis(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoBound {}

impl Bound {
    /// Whether the deadline is met by every job. None is always met.
    #[must_use]
    pub fn meets(&self, deadline: Option<Nanos>) -> bool {
        deadline.is_none_or(|deadline| self.response <= deadline)
    }

    /// The sum of all terms of the window. It is `window`; tests say so.
    #[must_use]
    pub fn sum_of_terms(&self) -> Nanos {
        let blocking = self.blocking.map_or(0, |blocking| blocking.time);
        let interference: Nanos = self.interference.iter().map(|term| term.work.time()).sum();
        blocking + self.own.time() + interference + self.not_supplied
    }
}

impl Analysis {
    /// Whether every job of every task with a deadline meets it, and so does every chain.
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
