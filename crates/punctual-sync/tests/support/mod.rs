//! What the tests of `shared` and `asynch` have in common.

#![allow(dead_code, reason = "every test uses its own part of this")]

pub(crate) mod tasks;

use std::time::{Duration, Instant};

/// Repeats `attempt` until it gives something. Far beyond any load of the machine, it gives up.
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

/// Lets a thread look so many times.
pub(crate) fn looks(mut left: u32) -> impl FnMut() -> bool {
    move || {
        let go_on = left > 0;
        left = left.saturating_sub(1);
        go_on
    }
}
