//! The conditions of the proof, each of which the model needs.

/// A violated condition of the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dropped {
    /// A sequence compares the CPU with the home CPU instead of the bias state.
    BiasWithinSequence,
    /// A sequence checks that the bias state is that of a biased word, and not that it equals its
    /// CPU.
    CpuWithinSequence,
    /// A thread loads its CPU before it announces the sequence.
    CpuLoadedWithinSequence,
    /// A store does not check again that the word is the one the thread has loaded.
    WordWithinSequence,
    /// A thread tests the word for blockers before it announces the sequence that sets a bit.
    TestWithinSequence,
    /// A thread looks for work before it clears the bit.
    LooksAfterChange,
    /// A thread that starts a job compares the flags before it announces the sequence.
    FlagsWithinSequence,
    /// A thread sets the flag after it has changed the word.
    FlaggedBeforeChange,
    /// A sequence continues after a preemption.
    StoreIsRestarted,
    /// A locked change is made as on the home CPU without checking the CPU.
    CpuBeforeLocked,
    /// A locked change continues after a preemption, although the thread may have been moved.
    LockedIsRestarted,
    /// A thread on the home CPU stores also while the word is not biased.
    LockedAtHome,
    /// An entering thread makes no barrier.
    Barrier,
    /// The barrier aborts no sequence, as `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
    BarrierAborts,
    /// The barrier drains no store buffer.
    BarrierEmpties,
    /// An entering thread sets `REVOKED` before it makes the barrier.
    RevokedAfterBarrier,
    /// An entering thread makes the barrier before it is counted.
    CountedBeforeBarrier,
    /// A thread that finds `REVOKED` is not counted.
    Counted,
    /// A thread leaves before it changes the word.
    LeavesAfterChange,
    /// The word is biased again while a thread is counted.
    NobodyCounted,
}

impl Dropped {
    pub(crate) const ALL: [Self; 20] = [
        Self::BiasWithinSequence,
        Self::CpuWithinSequence,
        Self::CpuLoadedWithinSequence,
        Self::WordWithinSequence,
        Self::TestWithinSequence,
        Self::LooksAfterChange,
        Self::FlagsWithinSequence,
        Self::FlaggedBeforeChange,
        Self::StoreIsRestarted,
        Self::CpuBeforeLocked,
        Self::LockedIsRestarted,
        Self::LockedAtHome,
        Self::Barrier,
        Self::BarrierAborts,
        Self::BarrierEmpties,
        Self::RevokedAfterBarrier,
        Self::CountedBeforeBarrier,
        Self::Counted,
        Self::LeavesAfterChange,
        Self::NobodyCounted,
    ];
}
