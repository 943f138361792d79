//! A log of what the threads of a test do.

use std::cell::RefCell;

use punctual_kernel::sim::{self, Sim};

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
