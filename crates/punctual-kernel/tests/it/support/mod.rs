//! The common parts of the tests: a log of what threads do; random programs, the model of their
//! behavior, and running both.

pub(crate) mod model;
pub(crate) mod program;
pub(crate) mod schedule;

use std::cell::RefCell;

use punctual_kernel::sim::{self, Sim};

/// Random numbers, reproducible from the seed on every machine (SplitMix64).
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

type Kernel = punctual_kernel::Kernel<Sim>;
type Thread = punctual_kernel::Thread<Sim>;
type Stack = punctual_kernel::Stack<Sim, 49152>;

thread_local! {
    // All threads of a simulation run on the thread of the test.
    pub(crate) static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn log(text: impl Into<String>) {
    LOG.with_borrow_mut(|log| log.push(text.into()));
}

/// Runs `f` in a thread of this priority, and everything that it starts; returns the log.
pub(crate) fn run(priority: u8, stack: &'static Stack, f: fn()) -> String {
    sim::run(|| {
        Thread::spawn(priority, stack, |f: fn()| f(), f).unwrap();
        Kernel::run();
    });
    LOG.take().join(" ")
}
