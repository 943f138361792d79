//! The worked jobs of section 6 of source 004, as events.
//!
//! The paper prints its traces as pictures and states in the text which lines bound each term; the
//! instants below are chosen so that the distances between those lines match. Line numbers in
//! comments are the paper's. For its releases, the paper's kernel records no other event of the
//! wake-up, so they are its starts here.

use punctual_trace::event::{Kind, SwitchOut};

use super::{IDLE, Script, task};

/// Section 6.1: pi-838 alone.
pub fn activation_without_concurrence() -> Script {
    let pi = task(838, 60);
    let t = 1_000_000;
    let mut trace = Script::new();
    trace.waking(t, 0, pi, 0); // 1
    trace.schedule(t + 15_000, 0); // 3
    trace.switch(t + 21_864, 0, SwitchOut::Runnable, pi); // 4
    trace.scheduled(t + 21_864 + 4_124, 0); // 5
    trace.at(t + 60_000, 0, Kind::SyscallEnter { number: 34 });
    trace.schedule(t + 100_149 - 10_654, 0); // 35
    trace.switch(t + 100_149, 0, SwitchOut::Sleeping, IDLE); // 36
    trace.scheduled(t + 101_000, 0);
    trace
}

/// Section 6.2: pi-839, of the higher priority, waits for the RT mutex that pi-838 holds.
pub fn concurrent_activation() -> Script {
    let (low, high) = (task(838, 60), task(839, 50));
    let (t1, t2) = (1_000_000, 1_001_000);
    // The ends of the intervals that the text measures.
    let (low_in, high_in) = (t1 + 63_586, t2 + 64_574);
    let (low_out, high_out) = (t1 + 365_626, t2 + 448_573);
    let contended = t2 + 110_000;
    let acquired = contended + 178_545;
    let lock = Kind::ContentionBegin { lock: 0xffff_8800_1234, flags: 8 };

    let mut trace = Script::new();
    trace.waking(t1, 4, low, 4); // 1
    trace.waking(t2, 5, high, 5); // 2
    trace.schedule(low_in - 5_000, 4);
    trace.switch(low_in, 4, SwitchOut::Runnable, low); // 5
    trace.schedule(high_in - 5_000, 5);
    trace.switch(high_in, 5, SwitchOut::Runnable, high); // 16
    trace.scheduled(low_in + 6_565, 4); // 9
    trace.scheduled(high_in + 6_068, 5); // 20
    trace.at(contended, 5, lock); // 49: it tries to take the mutex
    trace.at(contended + 4_000, 5, Kind::Inherit { task: 838, old: 60, new: 50 }); // 53
    trace.priority(4, 50);
    trace.schedule(contended + 9_000, 5); // 55
    trace.switch(contended + 12_000, 5, SwitchOut::Uninterruptible, IDLE); // 56
    trace.waking(contended + 100_000, 4, high, 5);
    trace.at(contended + 101_000, 4, Kind::Migrate { task: high, from: 5, to: 1 });
    trace.wakeup(contended + 103_000, 4, high, 1); // 61
    trace.at(contended + 110_000, 4, Kind::Inherit { task: 838, old: 50, new: 60 }); // 62
    trace.priority(4, 60);
    trace.schedule(contended + 150_000, 1); // 64
    trace.switch(contended + 155_000, 1, SwitchOut::Runnable, high); // 65
    trace.scheduled(contended + 160_000, 1);
    trace.at(acquired, 1, Kind::ContentionEnd { lock: 0xffff_8800_1234 }); // 82
    trace.schedule(low_out - 15_399, 4); // 78
    trace.switch(low_out, 4, SwitchOut::Sleeping, IDLE); // 84
    trace.schedule(high_out - 15_449, 1); // 107
    trace.switch(high_out, 1, SwitchOut::Sleeping, IDLE); // 108
    trace.events.sort_by_key(|event| event.time);
    trace
}
