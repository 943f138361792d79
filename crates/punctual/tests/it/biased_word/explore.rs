//! Breadth-first exploration of all possible executions.

use std::collections::HashSet;
use std::fmt::{Display, Write};
use std::hash::Hash;

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

/// Explores all states reachable from `first`, by shortest path.
pub(crate) fn explore<S: Explored>(first: S) -> Verdict<S> {
    let mut seen = S::Seen::default();
    let mut known = HashSet::from([first]);
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
