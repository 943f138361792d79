//! Locks between partitions in virtual time, where nobody may spin or sleep in the kernel: it would keep its turn.
//!
//! Who cannot have a lock pauses until somebody lets go of one. Who gets it next is decided as the locks of real time
//! decide: in order of arrival within a group, by level under the Priority Ceiling Protocol.

use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_core::Port;

use crate::part::Part;

/// What somebody wants to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The lock of a group, told by its address.
    Group(usize),
    /// A mutex of this ceiling, wanted by a job of this level.
    Ceiling { level: u8, ceiling: u8 },
}

/// What is held and what is waited for.
#[derive(Debug)]
pub(crate) struct Claims(Mutex<State>);

#[derive(Debug)]
struct State {
    held: Vec<(&'static Part, Claim)>,
    /// In order of arrival.
    waiting: Vec<(&'static Part, Claim)>,
}

/// A claim that was granted; given up when dropped.
#[derive(Debug)]
pub(crate) struct Claimed {
    part: &'static Part,
    claim: Claim,
}

impl Claims {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State { held: Vec::new(), waiting: Vec::new() }))
    }

    /// Waits until `part` may have `claim`.
    pub(crate) fn acquire(&self, part: &'static Part, claim: Claim) -> Claimed {
        self.lock().waiting.push((part, claim));
        loop {
            // A wake from here on means another look.
            part.partition.port().take_woken();
            let mut state = self.lock();
            if state.may(part, claim) {
                state.waiting.retain(|&(waiting, _)| !std::ptr::eq(waiting, part));
                state.held.push((part, claim));
                return Claimed { part, claim };
            }
            drop(state);
            super::pause(part, None);
        }
    }

    fn release(&self, part: &'static Part, claim: Claim) {
        let mut state = self.lock();
        let innermost =
            state.held.iter().rposition(|&(holder, held)| std::ptr::eq(holder, part) && held == claim);
        state.held.remove(innermost.expect("what is given up was held"));
        for (waiting, _) in &state.waiting {
            waiting.partition.port().wake(waiting.idle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether `part`, which waits, is the next to have what it wants.
    fn may(&self, part: &'static Part, claim: Claim) -> bool {
        match claim {
            Claim::Group(_) => {
                let first = self.waiting.iter().find(|(_, other)| *other == claim);
                let is_first = first.is_some_and(|&(first, _)| std::ptr::eq(first, part));
                is_first && self.held.iter().all(|(_, held)| *held != claim)
            }
            Claim::Ceiling { level, .. } => {
                let mut others = self.waiting.iter().filter(|(other, _)| !std::ptr::eq(*other, part));
                let higher = |&(other, claim): &(&'static Part, Claim)| matches!(claim, Claim::Ceiling { level: theirs, .. } if theirs > level && self.admits(other, theirs));
                self.admits(part, level) && !others.any(higher)
            }
        }
    }

    /// Whether `level` is above every ceiling that others than `part` hold.
    fn admits(&self, part: &'static Part, level: u8) -> bool {
        let mut others = self.held.iter().filter(|(holder, _)| !std::ptr::eq(*holder, part));
        others.all(|&(_, held)| !matches!(held, Claim::Ceiling { ceiling, .. } if level <= ceiling))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.part.runtime.claims.release(self.part, self.claim);
    }
}
