//! Nothing on the real-time path allocates: spawn, lock, timers, `pend`, waits for descriptors and
//! periodic releases, from any thread.
//!
//! The allocator counts the calls of all threads of this process between the start and the end of
//! `idle`, so this binary has only one test. Only the thread of the test harness is excluded:
//! without priorities it may still be active.
#![cfg(all(feature = "async", feature = "monitoring"))]

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/privileges.rs"]
mod privileges;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;

use allocator::Telling;
use punctual::Config;
use punctual::report::Outcome;
use test_skip::{Need, skip};

/// True while calls are counted.
static COUNTS: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
/// The thread of the test harness; 0 if the test runs on it.
static HARNESS: AtomicI32 = AtomicI32::new(0);

fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

fn count() {
    if COUNTS.load(Ordering::SeqCst) && this_thread() != HARNESS.load(Ordering::SeqCst) {
        CALLS.fetch_add(1, Ordering::SeqCst);
    }
}

#[global_allocator]
static ALLOCATOR: Telling = Telling(count);

/// True when the foreign thread is to start spawning.
static OUTSIDE: AtomicBool = AtomicBool::new(false);
/// Number of jobs it has spawned; the test continues at `ENOUGH`.
static SPAWNED: AtomicU64 = AtomicU64::new(0);
const ENOUGH: u64 = 50;

#[punctual::app(main = false, profile)]
mod app {
    use std::future::Future;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering;
    use std::task::{Context, Waker};

    use punctual::prelude::*;
    use rustix::event::{EventfdFlags, eventfd};

    use super::{COUNTS, ENOUGH, OUTSIDE, SPAWNED};

    #[shared]
    struct Shared {
        sum: u64,
        ticks: u64,
        released: u64,
    }

    #[local]
    struct Local {
        line: UnixStream,
        event: OwnedFd,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfds can be made");
        (Shared { sum: 0, ticks: 0, released: 0 }, Local { line, event, other_end })
    }

    #[idle(shared = [sum, ticks, released], local = [other_end])]
    fn idle(mut cx: idle::Context) {
        COUNTS.store(true, Ordering::SeqCst);
        OUTSIDE.store(true, Ordering::SeqCst);
        for round in 0..20 {
            while middle::spawn(round).is_err() {
                punctual::wait_for_event();
            }
            cx.shared.sum.lock(|sum| *sum += 1);
            edge::pend();
            rustix::io::write(&*cx.local.other_end, b"!").expect("there is room in the socket");
            punctual::wait_for_event();
        }
        // Not before the clock has released a job of each kind as well.
        while cx.shared.ticks.lock(|ticks| *ticks) < 20
            || cx.shared.released.lock(|released| *released) == 0
            || (OUTSIDE.load(Ordering::SeqCst) && SPAWNED.load(Ordering::SeqCst) < ENOUGH)
        {
            punctual::wait_for_event();
        }
        COUNTS.store(false, Ordering::SeqCst);
        punctual::shutdown();
    }

    /// Waits for the clock and for a descriptor, with a limit, and is spawned repeatedly.
    #[task(priority = 2, shared = [sum], local = [event])]
    async fn waits(mut cx: waits::Context, number: u64) {
        // One wait for a descriptor is dropped, and one of two for the same descriptor begins when
        // it is ready.
        let event = &*cx.local.event;
        let _ = punctual::timeout_after(20.micros(), punctual::readable(event)).await;
        let mut other = std::pin::pin!(punctual::readable(event));
        assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        rustix::io::write(event, &1_u64.to_ne_bytes()).expect("there is room in the count");
        punctual::readable(event).await.expect("an eventfd can be waited for");
        other.await.expect("an eventfd can be waited for");
        rustix::io::read(event, &mut [0; 8]).expect("it is ready");
        let delay = punctual::delay(50.micros());
        let _ = punctual::timeout_after(40.micros(), delay).await;
        punctual::delay_until(punctual::now() + 20.micros()).await;
        cx.shared.sum.lock(|sum| *sum += number);
    }

    #[task(priority = 1, capacity = 64)]
    fn low(_: low::Context, _number: u64) {}

    #[task(priority = 2, capacity = 4, shared = [sum])]
    fn middle(mut cx: middle::Context, number: u64) {
        // Lower, equal, and higher levels: some are rejected, which does not allocate either.
        let _ = waits::spawn(number);
        let _ = low::spawn(number);
        let _ = same::spawn(number);
        let _ = high::spawn(number);
        cx.shared.sum.lock(|sum| {
            // Waits for the end of the lock.
            let _ = high::spawn(number);
            *sum += number;
        });
        if let Ok(timer) = timed::spawn_after(1.secs()) {
            let timer = timer.reschedule_after(2.secs()).expect("it is far away");
            let timer = timer.reschedule_at(punctual::now() + 3.secs()).expect("it is far away");
            timer.cancel().expect("it is far away");
        }
        let _ = timed::spawn_after(500.micros());
        edge::pend();
    }

    #[task(priority = 2, capacity = 4)]
    fn same(_: same::Context, _number: u64) {}

    #[task(priority = 3, capacity = 4, min_interval = 1.nanos(), burst = 4, shared = [sum])]
    fn high(mut cx: high::Context, number: u64) {
        cx.shared.sum.lock(|sum| *sum += number);
    }

    #[task(priority = 3, capacity = 4, shared = [released])]
    fn timed(mut cx: timed::Context) {
        cx.shared.released.lock(|released| *released += 1);
    }

    #[task(priority = 4, period = 1.millis(), deadline = 1.millis(), shared = [ticks])]
    fn tick(mut cx: tick::Context) {
        cx.shared.ticks.lock(|ticks| *ticks += 1);
    }

    #[task(priority = 4, period = 2.millis(), on_overrun = queue, capacity = 4)]
    fn queued(_: queued::Context) {}

    #[task(binds = line, priority = 5, local = [line])]
    fn edge(cx: edge::Context) {
        cx.local.line.set_nonblocking(true).expect("a socket can be made not to block");
        // There may be no data: it is released by `pend` as well.
        let _ = rustix::io::read(&*cx.local.line, &mut [0; 8]);
    }
}

/// Spawns as a foreign thread, once permitted.
fn spawn_from_outside() {
    while !OUTSIDE.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    while SPAWNED.load(Ordering::SeqCst) < ENOUGH {
        match app::low::spawn(0) {
            Ok(()) => drop(SPAWNED.fetch_add(1, Ordering::SeqCst)),
            Err(_) => thread::yield_now(),
        }
        app::edge::pend();
    }
    // The end of a thread frees memory.
    while COUNTS.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

#[test]
fn no_allocation_between_start_and_end() {
    privileges::no_runaways_here();
    let first = rustix::process::getpid().as_raw_pid();
    HARNESS.store(if first == this_thread() { 0 } else { first }, Ordering::SeqCst);
    let file = std::env::temp_dir().join(format!("punctual-no-alloc-{}", std::process::id()));
    for (marks, profiled) in [(false, false), (true, false), (false, true), (true, true)] {
        OUTSIDE.store(false, Ordering::SeqCst);
        SPAWNED.store(0, Ordering::SeqCst);
        let report = thread::scope(|scope| {
            let outside = scope.spawn(spawn_from_outside);
            let config = Config::new().trace(marks);
            let config = if profiled { config.profile(&file) } else { config };
            let report = app::run(config);
            // If the app has not started, the thread still waits for it.
            SPAWNED.store(ENOUGH, Ordering::SeqCst);
            OUTSIDE.store(true, Ordering::SeqCst);
            outside.join().expect("it does not panic");
            report.expect("the app starts")
        });
        assert_eq!(report.outcome, Outcome::Shutdown);
        assert_eq!(
            CALLS.swap(0, Ordering::SeqCst),
            0,
            "on threads, with marks: {marks}, with a profile: {profiled}"
        );
        assert!(report.tasks.iter().all(|task| task.jobs > 0), "everything was tried: {report}");
        if marks && !report.settings.notes.iter().any(|note| note.contains("each job is marked")) {
            skip(Need::Tracefs, format_args!("{:?}", report.settings.notes));
        }
    }

    for config in [Config::new(), Config::new().profile(&file)] {
        let report = app::run(config.virtual_time()).expect("nothing can be missing");
        assert_eq!(report.outcome, Outcome::Shutdown);
        assert_eq!(CALLS.load(Ordering::SeqCst), 0, "in virtual time");
    }
    std::fs::remove_file(&file).expect("the profiles were written");

    // The counter counts.
    COUNTS.store(true, Ordering::SeqCst);
    drop(std::hint::black_box(Box::new(1)));
    COUNTS.store(false, Ordering::SeqCst);
    assert!(CALLS.load(Ordering::SeqCst) >= 2);
}
