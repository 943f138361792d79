//! Costs that are measured instead of read: on the current CPU, in a few milliseconds.

use std::hint::black_box;
use std::time::Instant;

use crate::tree::Tree;

/// The path of the system-call cost in a recording.
pub(super) const SYSTEM_CALL: &str = "/measured/system_call_ns";
/// The path of the clock cost in a recording.
pub(super) const CLOCK: &str = "/measured/clock_ns";

/// The path of the timers' resolution in a recording.
pub(super) const TIMER_RESOLUTION: &str = "/measured/timer_resolution_ns";

/// The number of rounds, of which the quickest counts: interruptions of a round are not the cost of
/// a call.
const ROUNDS: usize = 32;
const CALLS: u32 = 500;

/// Returns the cost of a null system call, in ns, on a running system or from a recording.
pub(super) fn system_call(tree: &Tree) -> Option<u64> {
    of(tree, SYSTEM_CALL, || {
        // A call that a library cannot answer itself.
        black_box(rustix::process::getppid());
    })
}

/// Returns the cost of reading the clock, in ns, on a running system or from a recording.
pub(super) fn clock(tree: &Tree) -> Option<u64> {
    of(tree, CLOCK, || {
        black_box(Instant::now());
    })
}

/// Returns the resolution of kernel timers, in ns, on a running system or from a recording: that of
/// the clock with high-resolution timers, otherwise the period of the tick.
pub(super) fn timer_resolution(tree: &Tree) -> Option<u64> {
    if !tree.is_live() {
        return tree.number(TIMER_RESOLUTION);
    }
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    let ns =
        u64::try_from(resolution.tv_sec).ok()? * 1_000_000_000 + u64::try_from(resolution.tv_nsec).ok()?;
    tree.keep(TIMER_RESOLUTION, &ns.to_string());
    Some(ns)
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
    fn measures_only_running_system() {
        assert!(system_call(&Tree::system()).is_some_and(|ns| ns > 0));
        assert_eq!(system_call(&Tree::parse("")), None);
        assert_eq!(clock(&Tree::parse("").with(CLOCK, "31")), Some(31));
    }
}
