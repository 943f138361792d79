//! The thread of a polling partition makes no system call in any operation that Punctual offers its
//! tasks.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::polling::witness;
use test_skip::{Need, skip};

/// True if a job is to make a system call of its own.
static STRAY: AtomicBool = AtomicBool::new(false);
/// Jobs of the polling partition that have run.
static JOBS: AtomicU32 = AtomicU32::new(0);
/// Calls that the background thread has made.
static SUBMITTED: AtomicU32 = AtomicU32::new(0);

const ENOUGH: u32 = 3_000;

#[punctual::app(partitions = [ordinary, fast(poll)], main = false)]
mod app {
    use punctual::background;
    use punctual::prelude::*;

    use super::*;

    #[shared]
    struct Shared {
        /// Within the polling partition.
        near: u32,
        /// Across partitions.
        far: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        arm::spawn().unwrap();
        (Shared { near: 0, far: 0 }, Local {})
    }

    #[task(core = fast, priority = 1)]
    fn arm(_: arm::Context) {
        witness::watch_me();
        if STRAY.load(Ordering::Relaxed) {
            std::hint::black_box(rustix::process::getpid());
        }
        waits::spawn().unwrap();
        feed::spawn(0).unwrap();
    }

    /// Keeps the polling partition busy from the other CPU, with operations that elsewhere need a
    /// system call, until it has done enough.
    #[task(core = ordinary, shared = [far])]
    fn feed(mut cx: feed::Context, round: u32) {
        cx.shared.far.lock(|far| *far += 1);
        let taken = low::spawn(round).is_ok() && high::spawn(round).is_ok();
        if JOBS.load(Ordering::Relaxed) >= ENOUGH {
            end::spawn().unwrap();
        } else if taken && !round.is_multiple_of(7) {
            feed::spawn(round + 1).unwrap();
        } else {
            // A pause, so that the other side runs out of work and its timers expire.
            feed::spawn_after(200.micros(), round + 1).unwrap();
        }
    }

    #[task(core = fast, priority = 1, capacity = 8, shared = [near, far])]
    fn low(mut cx: low::Context, round: u32) {
        JOBS.fetch_add(1, Ordering::Relaxed);
        cx.shared.near.lock(|near| {
            *near += 1;
            high::spawn(round).ok();
        });
        cx.shared.far.lock(|far| *far += 1);
        let armed = timed::spawn_after(30.micros());
        if round.is_multiple_of(3) {
            armed.ok().map(|armed| armed.cancel());
        }
        let call = || {
            SUBMITTED.fetch_add(1, Ordering::Relaxed);
        };
        background::submit(call).ok();
    }

    #[task(core = fast, priority = 3, capacity = 8, shared = [near])]
    fn high(mut cx: high::Context, _: u32) {
        JOBS.fetch_add(1, Ordering::Relaxed);
        cx.shared.near.lock(|near| *near += 1);
    }

    #[task(core = fast, priority = 2, capacity = 4, shared = [far])]
    fn timed(mut cx: timed::Context) {
        JOBS.fetch_add(1, Ordering::Relaxed);
        cx.shared.far.lock(|far| *far += 1);
        back::spawn().ok();
    }

    #[task(core = fast, priority = 2, period = 100.micros(), shared = [near])]
    fn periodic(mut cx: periodic::Context) {
        JOBS.fetch_add(1, Ordering::Relaxed);
        cx.shared.near.lock(|near| *near += 1);
        punctual::spend(5.micros());
    }

    #[task(core = fast, priority = 1)]
    async fn waits(_: waits::Context) {
        loop {
            punctual::delay(150.micros()).await;
            JOBS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spawned from the polling partition, whose thread must not wake any other.
    #[task(core = ordinary, capacity = 8)]
    fn back(_: back::Context) {}

    #[task(core = ordinary)]
    fn end(_: end::Context) {
        witness::look_away();
        punctual::shutdown();
    }
}

/// Returns the numbers of the calls that the polling thread made; `None` if they cannot be
/// observed.
fn run(stray: bool) -> Option<Vec<i32>> {
    STRAY.store(stray, Ordering::Relaxed);
    JOBS.store(0, Ordering::Relaxed);
    let witness = witness::start();
    let report = app::run(punctual::Config::new()).expect("there are two CPUs");
    let seen = witness.join().unwrap();
    assert_eq!(report.exit_code(), 0, "{report}");
    assert!(SUBMITTED.load(Ordering::Relaxed) > 0, "{report}");
    if seen.is_none() {
        skip(Need::Seccomp, "system calls of a polling partition");
    }
    seen
}

#[test]
fn makes_no_system_call() {
    let _alone = crate::alone();
    if !crate::polling::two_cpus() {
        return;
    }
    if let Some(seen) = run(false) {
        assert!(seen.is_empty(), "system calls {seen:?}");
    }
    if let Some(seen) = run(true) {
        assert_eq!(seen, [libc::SYS_getpid as i32], "a call is seen");
    }
}
