//! The common parts of the tests of `shared` and `asynch`.

#![allow(dead_code, unused_imports, reason = "every test uses its own part of this")]

mod polls;
pub(crate) mod tasks;

use std::time::{Duration, Instant};

pub(crate) use polls::polls;

/// Repeats `attempt` until it returns `Some`. Panics after a time far longer than any delay of the
/// machine.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    for turn in 1_u64.. {
        if let Some(done) = attempt() {
            return done;
        }
        if turn % 64 == 0 {
            std::thread::yield_now();
        }
        if turn % 4096 == 0 && begin.elapsed() > Duration::from_secs(120) {
            break;
        }
    }
    panic!("waited two minutes for {what}");
}
