//! The hardware and the steps that the models share: two CPUs with store buffers (x86-TSO: P.
//! Sewell et al., CACM 53(7), 2010), of which one is the home CPU.

use std::fmt::{self, Debug, Display};

/// The CPU to which the word is biased.
pub(crate) const HOME: usize = 0;
pub(crate) const CPUS: usize = 2;
pub(crate) const THREADS: usize = 3;

/// Stores that have not reached memory, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Buffer<S>([Option<S>; 8]);

impl<S: Copy> Buffer<S> {
    pub(crate) fn is_empty(self) -> bool {
        self.0[0].is_none()
    }

    pub(crate) fn push(&mut self, store: S) {
        let free = self.0.iter_mut().find(|store| store.is_none());
        *free.expect("the buffer holds eight stores") = Some(store);
    }

    pub(crate) fn take_oldest(&mut self) -> Option<S> {
        let oldest = self.0[0].take();
        self.0.rotate_left(1);
        oldest
    }

    /// Returns the newest store for which `f` returns a value, as that value.
    pub(crate) fn newest<T>(self, f: impl Fn(S) -> Option<T>) -> Option<T> {
        self.0.into_iter().rev().flatten().find_map(f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Cpu<S> {
    pub(crate) running: Option<usize>,
    pub(crate) buffer: Buffer<S>,
}

impl<S: Copy> Cpu<S> {
    pub(crate) const IDLE: Self = Self { running: None, buffer: Buffer([None; 8]) };
}

/// The action of a step, formatted only for a violation; `At` is an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action<At> {
    StoreReachesMemory,
    BiasesAgain,
    SwitchIn(usize),
    SwitchOut(usize),
    Run(usize, At),
}

impl<At: Debug> Display for Action<At> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreReachesMemory => write!(f, "a store reaches the memory"),
            Self::BiasesAgain => write!(f, "a change of the word biases it again"),
            Self::SwitchIn(thread) => write!(f, "thread {thread} is switched in"),
            Self::SwitchOut(thread) => write!(f, "thread {thread} is switched out"),
            Self::Run(thread, at) => write!(f, "thread {thread}: {at:?}"),
        }
    }
}
