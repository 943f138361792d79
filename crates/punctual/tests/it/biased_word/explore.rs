//! Breadth-first exploration of all possible executions.

use std::collections::HashMap;
use std::fmt::Write;

use super::machine::{Machine, Seen};

/// Result of an exploration.
pub(crate) enum Verdict {
    /// No violation in any execution.
    Sound { explored: usize, seen: Seen },
    /// A violation, and the steps that lead to it.
    Wrong { what: String, trace: String },
}

/// Explores all states reachable from `first`, by shortest path.
pub(crate) fn explore(first: Machine) -> Verdict {
    let mut seen = Seen::default();
    // Each state with its number, and its predecessor.
    let mut numbers: HashMap<Machine, usize> = HashMap::from([(first.clone(), 0)]);
    let mut came: Vec<(usize, String)> = vec![(0, "begin".to_owned())];
    let mut states = vec![first];
    let mut at = 0;
    while at < states.len() {
        let state = states[at].clone();
        let next = state.steps(&mut seen);
        if next.is_empty() && !state.is_over() {
            return wrong("nobody can go on".to_owned(), &came, at, String::new());
        }
        for (step, result) in next {
            match result {
                Err(what) => return wrong(what, &came, at, step),
                Ok(state) => {
                    numbers.entry(state).or_insert_with_key(|state| {
                        states.push(state.clone());
                        came.push((at, step));
                        states.len() - 1
                    });
                }
            }
        }
        at += 1;
    }
    Verdict::Sound { explored: states.len(), seen }
}

fn wrong(what: String, came: &[(usize, String)], mut at: usize, last: String) -> Verdict {
    let mut steps = vec![last];
    while at != 0 {
        steps.push(came[at].1.clone());
        at = came[at].0;
    }
    let mut trace = String::new();
    for step in steps.iter().rev() {
        let _ = writeln!(trace, "  {step}");
    }
    Verdict::Wrong { what, trace }
}
