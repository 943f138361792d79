//! Breadth-first exploration of all possible executions.

use std::collections::HashSet;
use std::fmt::Write;

use super::machine::{Action, Machine, Seen};

/// Result of an exploration.
pub(crate) enum Verdict {
    /// No violation in any execution.
    Sound { explored: usize, seen: Seen },
    /// A violation, and the steps that lead to it.
    Wrong { what: String, trace: String },
}

/// A reached state, and the last step to it: from a state with a lower number, on a CPU.
struct Reached {
    state: Machine,
    from: usize,
    by: Option<(usize, Action)>,
}

/// Explores all states reachable from `first`, by shortest path.
pub(crate) fn explore(first: Machine) -> Verdict {
    let mut seen = Seen::default();
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

fn wrong(what: String, reached: &[Reached], mut at: usize, last: Option<(usize, Action)>) -> Verdict {
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
