//! What is measured instead of read: costs on the CPU that this runs on, in a few milliseconds.

use std::hint::black_box;
use std::time::Instant;

use crate::tree::Tree;

/// Where a recording has the figures.
pub(super) const SYSTEM_CALL: &str = "/measured/system_call_ns";
/// Of reading the clock.
pub(super) const CLOCK: &str = "/measured/clock_ns";

/// Rounds, of which the quickest counts: what interrupts a round is not the cost of a call.
const ROUNDS: usize = 32;
const CALLS: u32 = 500;

/// What a system call that does nothing takes, in ns, if this is a running system or a recording has it.
pub(super) fn system_call(tree: &Tree) -> Option<u64> {
    of(tree, SYSTEM_CALL, || {
        // Not one that a library could answer by itself.
        black_box(rustix::process::getppid());
    })
}

/// What reading the clock takes, in ns, likewise.
pub(super) fn clock(tree: &Tree) -> Option<u64> {
    of(tree, CLOCK, || {
        black_box(Instant::now());
    })
}

fn of(tree: &Tree, path: &str, call: impl Fn()) -> Option<u64> {
    if !tree.is_live() {
        return tree.number(path);
    }
    let round = || {
        let begun = Instant::now();
        (0..CALLS).for_each(|_| call());
        begun.elapsed().as_nanos() as u64 / u64::from(CALLS)
    };
    let quickest = (0..ROUNDS).map(|_| round()).min()?;
    tree.keep(path, &quickest.to_string());
    Some(quickest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_only_a_running_system() {
        assert!(system_call(&Tree::system()).is_some_and(|ns| ns > 0));
        assert_eq!(system_call(&Tree::parse("")), None);
        assert_eq!(clock(&Tree::parse("").with(CLOCK, "31")), Some(31));
    }
}
