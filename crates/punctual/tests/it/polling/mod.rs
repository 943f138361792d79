//! Polling partitions: one thread that never sleeps and never enters the kernel.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod no_system_calls;
mod order;
mod witness;
mod work;

/// Returns whether there are two CPUs to run on. Prints a notice if not.
fn two_cpus() -> bool {
    let enough = rustix::thread::sched_getaffinity(None).is_ok_and(|cpus| cpus.count() > 1);
    if !enough {
        test_skip::skip(test_skip::Need::TwoCpus, "a polling partition");
    }
    enough
}

/// Returns how often a thread has slept, given its `status` in `/proc`.
pub(crate) fn voluntary_switches(status: &str) -> u64 {
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("the kernel counts switches")
}

/// Returns virtual time, and threads if there are enough CPUs.
fn both() -> impl Iterator<Item = punctual::Config> {
    let virtual_time = punctual::Config::new().virtual_time();
    std::iter::once(virtual_time).chain(two_cpus().then(punctual::Config::new))
}
