//! Invariants at every instant: one user per resource, one runner per lane, order among one
//! spawner's jobs.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::random;

const RELAXED: Ordering = Ordering::Relaxed;

/// Levels of a partition, including idle.
pub(crate) const LEVELS: usize = 9;
/// Number of lanes. A *lane* is a level of a partition, which runs one job at a time. The lanes of
/// the second partition follow those of the first.
const LANES: usize = 2 * LEVELS;

/// Returns the name of a lane.
fn name(lane: usize) -> String {
    match lane.checked_sub(LEVELS) {
        None => format!("level {lane}"),
        Some(level) => format!("level {level} of the second partition"),
    }
}

/// Maximum number of threads that spawn, over all rounds.
const SPAWNERS: usize = 4096;

static VIOLATIONS: AtomicU64 = AtomicU64::new(0);

/// Reports a violated invariant.
#[cold]
pub(crate) fn violation(what: &str) {
    // The first ones are sufficient.
    if VIOLATIONS.fetch_add(1, RELAXED) < 20 {
        eprintln!("VIOLATION: {what}");
    }
}

/// Returns the number of violations.
pub(crate) fn violations() -> u64 {
    VIOLATIONS.load(RELAXED)
}

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Returns a number for the calling thread, from 1.
fn thread() -> u32 {
    static THREADS: AtomicU32 = AtomicU32::new(1);
    if THREAD.get() == 0 {
        THREAD.set(THREADS.fetch_add(1, RELAXED));
    }
    THREAD.get()
}

// ---- resources ----------------------------------------------------------------------------------

/// A resource that detects a second user.
#[derive(Debug)]
pub(crate) struct Guarded {
    name: &'static str,
    user: AtomicU32,
    /// Equal except in the middle of a visit.
    pair: (u64, u64),
}

impl Guarded {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, user: AtomicU32::new(0), pair: (0, 0) }
    }

    /// Uses the resource, with `within` in the middle, where the calling thread may suspend itself.
    pub(crate) fn visit(&mut self, within: impl FnOnce()) {
        let (name, me) = (self.name, thread());
        let other = self.user.swap(me, RELAXED);
        if other != 0 {
            violation(&format!("thread {me} uses resource {name}, which thread {other} is using"));
        }
        let before = black_box(&mut self.pair).0;
        self.pair.0 += 1;
        black_box(&mut self.pair);
        if random::one_in(24) {
            random::pause(10, 300);
        }
        within();
        self.pair.1 += 1;
        let after = *black_box(&mut self.pair);
        if after != (before + 1, before + 1) {
            violation(&format!("resource {name} went from {before} to {after:?} in one visit"));
        }
        let other = self.user.swap(0, RELAXED);
        if other != me {
            violation(&format!("resource {name} was left by thread {me} and taken by thread {other}"));
        }
    }

    /// Returns the number of visits.
    pub(crate) fn visits(&self) -> u64 {
        if self.pair.0 != self.pair.1 || self.user.load(RELAXED) != 0 {
            violation(&format!("resource {} is left in the middle of a visit: {:?}", self.name, self.pair));
        }
        self.pair.0
    }
}

// ---- lanes --------------------------------------------------------------------------------------

static RUNNERS: [AtomicU32; LANES] = [const { AtomicU32::new(0) }; LANES];

/// A job in progress, alone in its lane.
pub(crate) struct Alone(usize);

impl Alone {
    pub(crate) fn at(lane: usize) -> Self {
        let other = RUNNERS[lane].swap(thread(), RELAXED);
        if other != 0 {
            violation(&format!("threads {other} and {} run jobs of {}", thread(), name(lane)));
        }
        Self(lane)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if RUNNERS[self.0].swap(0, RELAXED) != thread() {
            violation(&format!("a job of {} was not alone until its end", name(self.0)));
        }
    }
}

/// Returns the threads that run jobs, by lane, for observers.
pub(crate) fn runners() -> [u32; LANES] {
    std::array::from_fn(|lane| RUNNERS[lane].load(RELAXED))
}

// ---- order --------------------------------------------------------------------------------------

static LAST: [[AtomicU32; LANES]; SPAWNERS] = [const { [const { AtomicU32::new(0) }; LANES] }; SPAWNERS];

/// Position of a job among those that one thread spawns to one lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    spawner: u32,
    number: u32,
}

/// Returns the position of the next job that this thread spawns to `lane`.
pub(crate) fn next_place(lane: usize) -> Place {
    thread_local! {
        static NUMBERS: [Cell<u32>; LANES] = const { [const { Cell::new(0) }; LANES] };
    }
    let number = NUMBERS.with(|numbers| {
        numbers[lane].set(numbers[lane].get() + 1);
        numbers[lane].get()
    });
    Place { spawner: thread(), number }
}

/// Checks that no later job of the same spawner and lane has started before.
pub(crate) fn in_order(lane: usize, place: Place) {
    let Some(last) = LAST.get(place.spawner as usize) else { return };
    let last = last[lane].swap(place.number, RELAXED);
    if last >= place.number {
        let Place { spawner, number } = place;
        violation(&format!("{}: job {number} of thread {spawner} starts after its job {last}", name(lane)));
    }
}
