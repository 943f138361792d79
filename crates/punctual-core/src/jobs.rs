//! The functions that run the jobs of a level.

use core::num::NonZeroUsize;

use crate::Instant;
use crate::current::CurrentWorker;
use crate::level::Stamp;

/// Runs a popped job. The arguments are the worker, the job, and the job's start, if known; returns
/// the job's end, if it has read the clock.
///
/// # Safety
/// The calling thread occupies the level and has popped the job, whose node is one that this
/// function runs.
pub type Run = unsafe fn(CurrentWorker, Popped, PackedStamp) -> PackedStamp;

/// A [`Stamp`] in one register. The end of the clock counts as unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedStamp(u64);

impl PackedStamp {
    /// An unknown time.
    pub const UNKNOWN: Self = Self(u64::MAX);

    /// Returns the time, or reads it if it is unknown.
    // Not by way of a `Stamp`: the compiler would copy the code behind the conversion for each
    // case.
    #[inline(always)]
    pub fn unwrap_or_else(self, read: impl FnOnce() -> Instant) -> Instant {
        if self == Self::UNKNOWN { read() } else { Instant::from_ticks(self.0) }
    }
}

impl From<Stamp> for PackedStamp {
    #[inline(always)]
    fn from(stamp: Stamp) -> Self {
        stamp.map_or(Self::UNKNOWN, |time| Self(time.as_ticks()))
    }
}

impl From<PackedStamp> for Stamp {
    #[inline(always)]
    fn from(stamp: PackedStamp) -> Self {
        (stamp != PackedStamp::UNKNOWN).then(|| Instant::from_ticks(stamp.0))
    }
}

/// A job that the occupant of a level has removed from the level's queue or timers.
// The index of its node plus 1, as in the queue, in a whole register: both are free for the code
// that computes addresses from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Popped(NonZeroUsize);

impl Popped {
    /// Returns the job that the queue refers to by `link`, the index of its node plus 1; `None` for
    /// 0.
    #[inline(always)]
    pub(crate) const fn from_link(link: u32) -> Option<Self> {
        match NonZeroUsize::new(link as usize) {
            Some(link) => Some(Self(link)),
            None => None,
        }
    }

    /// Returns the job of a node.
    #[inline(always)]
    pub const fn of(node: u32) -> Self {
        Self(NonZeroUsize::MIN.saturating_add(node as usize))
    }

    /// Returns the index of the job's node, plus 1.
    #[inline(always)]
    pub(crate) const fn link(self) -> NonZeroUsize {
        self.0
    }

    /// Returns the index of the job's node.
    #[inline(always)]
    pub const fn node(self) -> u32 {
        self.0.get() as u32 - 1
    }
}

/// The functions that run the jobs of a level: one for each node, or a closure.
///
/// The executor calls one of them on a thread that occupies the level, once for each time a node
/// was queued by a spawn, a timer or a periodic task. It selects the function by the node's index,
/// in constant time for any number of tasks.
#[derive(Clone, Copy)]
pub struct Jobs(Functions);

#[derive(Clone, Copy)]
enum Functions {
    ByNode(&'static [Run]),
    Closure(&'static (dyn Fn(CurrentWorker, u32, Stamp) -> Stamp + Sync)),
}

impl Jobs {
    /// One function for each node.
    ///
    /// # Safety
    /// Each function requires nothing of its caller beyond its arguments and the contract of
    /// [`Run`].
    pub const unsafe fn by_node(run: &'static [Run]) -> Self {
        Self(Functions::ByNode(run))
    }

    /// One closure for all nodes, which are its second argument.
    pub const fn of(run: &'static (impl Fn(CurrentWorker, u32, Stamp) -> Stamp + Sync)) -> Self {
        Self(Functions::Closure(run))
    }

    /// Returns `true` if these functions serve a level of `nodes` nodes.
    pub(crate) const fn are_of(&self, nodes: usize) -> bool {
        match self.0 {
            Functions::ByNode(run) => run.len() == nodes,
            Functions::Closure(_) => true,
        }
    }

    /// Runs the job.
    ///
    /// # Safety
    /// As for [`Run`]; the node is one of a level whose nodes these functions
    /// [serve](Self::are_of).
    #[inline(always)]
    pub(crate) unsafe fn run(&self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        match self.0 {
            // SAFETY: the table has a function for each node, including this one, which requires no
            // more than this function's contract, see `by_node`.
            Functions::ByNode(run) => unsafe { run.get_unchecked(job.link().get() - 1)(me, job, now) },
            Functions::Closure(run) => run(me, job.node(), now.into()).into(),
        }
    }
}
