//! Breadth-first exploration of all possible executions.

use std::collections::HashSet;
use std::fmt::{Display, Write};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A state of a model.
pub(crate) trait Explored: Copy + Eq + Hash {
    /// The action of a step.
    type Action: Copy + Display;
    /// Events seen somewhere in an exploration.
    type Seen: Default;

    /// Returns whether all threads have finished.
    fn is_over(&self) -> bool;

    /// Returns all possible next steps.
    fn steps(&self, seen: &mut Self::Seen) -> Vec<Step<Self>>;
}

/// A CPU, its action, and the resulting state or violation.
pub(crate) type Step<S> = ((usize, <S as Explored>::Action), Result<S, String>);

/// Result of an exploration.
pub(crate) enum Verdict<S: Explored> {
    /// No violation in any execution.
    Sound { explored: usize, seen: S::Seen },
    /// A violation, and the steps that lead to it.
    Wrong { what: String, trace: String },
}

/// A reached state, and the last step to it: from a state with a lower number, on a CPU.
struct Reached<S: Explored> {
    state: S,
    from: usize,
    by: Option<(usize, S::Action)>,
}

/// Hashes a state with one multiplication per field. Half of the time of an exploration would be
/// that of the standard library's hasher, which resists attacks.
#[derive(Default)]
struct Multiply(u64);

impl Multiply {
    fn add(&mut self, value: u64) {
        // The fraction of the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.add(u64::from(byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        // A product mixes upwards, and the table uses the lowest bits too.
        self.0 ^ self.0 >> 32
    }
}

/// Explores all states reachable from `first`, by shortest path.
pub(crate) fn explore<S: Explored>(first: S) -> Verdict<S> {
    let mut seen = S::Seen::default();
    let mut known = HashSet::<S, BuildHasherDefault<Multiply>>::from_iter([first]);
    let mut reached = vec![Reached { state: first, from: 0, by: None }];
    let mut at = 0;
    while at < reached.len() {
        let state = reached[at].state;
        let next = state.steps(&mut seen);
        if next.is_empty() && !state.is_over() {
            return wrong("nobody can go on".to_owned(), &reached, at, None);
        }
        for (by, result) in next {
            match result {
                Err(what) => return wrong(what, &reached, at, Some(by)),
                Ok(state) if known.insert(state) => reached.push(Reached { state, from: at, by: Some(by) }),
                Ok(_) => {}
            }
        }
        at += 1;
    }
    Verdict::Sound { explored: reached.len(), seen }
}

fn wrong<S: Explored>(
    what: String,
    reached: &[Reached<S>],
    mut at: usize,
    last: Option<(usize, S::Action)>,
) -> Verdict<S> {
    let mut steps = Vec::from_iter(last);
    while let Some(by) = reached[at].by {
        steps.push(by);
        at = reached[at].from;
    }
    let mut trace = String::new();
    for (cpu, action) in steps.iter().rev() {
        let _ = writeln!(trace, "  CPU {cpu}: {action}");
    }
    Verdict::Wrong { what, trace }
}
