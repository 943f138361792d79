//! The differences between a Linux process and a board, for code that both share.

use punctual_core::{CurrentWorker, Duration};

use crate::port::Suspensions;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;

/// A platform of apps. [`Host`](super::Host) is the one of this build.
#[cfg_attr(not(feature = "async"), allow(dead_code, reason = "async tasks alone use some functions"))]
pub(crate) trait Platform {
    /// The right to release or arm jobs, until dropped: the run does not end before.
    type Entry;

    /// True if queued jobs may have to be dropped, marked or watched.
    const CHECKS_QUEUED_JOBS: bool;
    /// The longest duration in ns within which no job can have suspended itself.
    const MAX_UNSUSPENDED: u64;
    /// True if a thread can lend its priority to another.
    const HAS_PRIORITIES: bool;

    /// Returns the partition whose code runs here, and its worker.
    fn here() -> Option<(&'static PartitionState, CurrentWorker)>;

    /// Returns the worker of the running code, if it belongs to `partition`.
    fn worker_of(partition: &'static PartitionState) -> Option<CurrentWorker>;

    /// Returns `partition`, whose address the compiler then keeps in a register. It would otherwise
    /// compute the address of a static again for each use.
    #[inline(always)]
    fn in_register(partition: &'static PartitionState) -> &'static PartitionState {
        partition
    }

    /// Returns whether the running code belongs to `partition`.
    fn is_in(partition: &'static PartitionState) -> bool;

    /// Returns the worker of the running code. After [`is_in`](Self::is_in), this costs one
    /// comparison less than [`worker_of`](Self::worker_of).
    ///
    /// # Safety
    /// The running code belongs to a partition.
    unsafe fn worker() -> CurrentWorker;

    /// Returns whether the running code belongs to `runtime`.
    fn is_of(runtime: &'static Runtime) -> bool;

    /// Returns whether the running code is the only one left of a run of `runtime`.
    fn is_last_of(runtime: &'static Runtime) -> bool;

    /// Lets the running code release jobs of `runtime`; `None` if it is not running, or stopping.
    fn enter(runtime: &'static Runtime) -> Option<Self::Entry>;

    /// Lets the running code arm and cancel timed jobs of `partition`; `None` if the app is not
    /// running.
    fn visit(partition: &'static PartitionState) -> Option<Self::Entry>;

    /// Returns whether jobs have to be dropped, marked, watched or checked, or spawns be rejected.
    /// Both arguments are constants to the compiler.
    fn is_instrumented(runtime: &'static Runtime, partition: &'static PartitionState) -> bool;

    /// Returns whether the current queued job is to be dropped.
    fn drops_queued(runtime: &'static Runtime) -> bool;

    /// Returns whether queued jobs are dropped because one has panicked.
    fn aborts(runtime: &'static Runtime) -> bool;

    /// Runs the user's function of the task `name`, whose panic stops the app. Its
    /// [end is checked](Self::check_end) unless `is_unchecked`.
    fn call(runtime: &'static Runtime, name: &'static str, is_unchecked: bool, f: impl FnOnce());

    /// Checks the end of a job of the task `name`, if jobs are
    /// [instrumented](Self::is_instrumented).
    fn check_end(runtime: &'static Runtime, name: &'static str);

    /// Runs user code that is not a job. If it panics, the app stops.
    fn contained<R>(runtime: &'static Runtime, culprit: Culprit, f: impl FnOnce() -> R) -> Option<R>;

    /// Runs user code in place of a job, and treats its end like that of a job.
    fn ended_by(runtime: &'static Runtime, culprit: Culprit, f: impl FnOnce());

    /// Lets the execution time that the current job declares pass, in virtual time.
    fn spend(partition: &'static PartitionState, me: CurrentWorker, execution: Duration);

    /// Adds a job that ended after `gross` ns to the execution time of `partition`, which was
    /// `before` at its start; `preempted` ns of it were of other jobs.
    fn add_executed(partition: &PartitionState, before: u64, gross: u64, preempted: u64);

    /// Returns the suspensions of such a job.
    fn suspensions(partition: &PartitionState, gross: u64, preempted: u64) -> Suspensions;
}
