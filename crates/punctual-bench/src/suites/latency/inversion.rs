//! An ordinary thread holds a lock that a real-time thread needs from an instant on: measures the
//! wait, including the rest of the critical section.
//!
//! Under load only priority inheritance bounds this wait: without it every ordinary thread that the
//! kernel prefers to the holder runs first.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::Instant;
use rustix::thread::ClockId;

use super::timers::timespec;
use super::{Condition, Contender, Window, alternate, row};
use crate::clock::monotonic_ns;
use crate::contend::{self, Lock};
use crate::peers::Semaphore;
use crate::rt::{self, Lack};
use crate::session::{Step, Unit};
use crate::subject::{Subject, outcome};

/// The time from the start of the critical section to the instant, in which the waiter falls
/// asleep.
const LEAD_NS: u64 = 200_000;

/// The number of additions in the critical section after the instant.
const WORK: u64 = 1000;

/// Few, since the ordinary thread rarely runs under load.
const SAMPLES: usize = 64;

pub(super) fn steps(condition: Condition) -> Vec<Step> {
    let name = condition.name();
    vec![Step::new(format!("inversion, {name}"), move |session| {
        let _load = condition.begin(session);
        let operation = "Inversion: from the instant at which a held lock is wanted to having it";
        let row = |subject| row("inversion", operation, subject).under(name);
        let cpu = session.plan.cpu;
        let contenders = vec![
            Contender::new(row(Subject::Punctual), Unit::Nanos, move |window| {
                outcome(app::run(punctual::Config::new().cpu(cpu), window.clone()))
            }),
            Contender::new(row(Subject::Posix), Unit::Nanos, move |window| {
                Ok(threads(&contend::posix(), window, cpu))
            }),
        ];
        alternate(session, session.samples().min(SAMPLES), contenders);
    })]
}

/// The rest of a critical section, part of which remains at the instant.
fn hold_until_after(instant_ns: u64) {
    while monotonic_ns() < instant_ns {
        std::hint::spin_loop();
    }
    (0..WORK).for_each(|number| {
        black_box(number);
    });
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use punctual::prelude::*;

    use super::*;

    #[shared]
    struct Shared {
        held: (),
        window: Window,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, window: Window) -> (Shared, Local) {
        (Shared { held: (), window }, Local {})
    }

    /// Runs on an ordinary thread, which the worker of `wants` preempts in the critical section.
    #[idle(shared = [held, &window])]
    fn idle(mut cx: idle::Context) {
        let window = cx.shared.window;
        while !window.is_over() {
            let before = window.recorder.len();
            cx.shared.held.lock(|()| {
                let instant_ns = monotonic_ns() + LEAD_NS;
                wants::spawn_at(Instant::from_ticks(instant_ns), instant_ns).expect("one waits at a time");
                hold_until_after(instant_ns);
            });
            // At once if the levels preempt this.
            window.await_sample_after(before);
        }
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [held, &window])]
    fn wants(mut cx: wants::Context, instant_ns: u64) {
        let now_ns = cx.shared.held.lock(|()| monotonic_ns());
        cx.shared.window.recorder.push(now_ns.saturating_sub(instant_ns));
    }
}

/// The same with an ordinary thread, one at SCHED_FIFO, and a mutex.
fn threads(lock: &impl Lock, window: &Window, cpu: usize) -> Lack {
    let (start, instant) = (Semaphore::new(0), AtomicU64::new(0));
    let (ended, ready) = (AtomicBool::new(false), Barrier::new(2));
    let wants = || {
        let lack = rt::enter(cpu, rt::PRIORITY);
        let member = lock.join(contend::CEILING);
        ready.wait();
        loop {
            start.acquire();
            if ended.load(Ordering::Acquire) {
                return lack;
            }
            let instant_ns = instant.load(Ordering::Acquire);
            let at = timespec(instant_ns);
            // A wait interrupted by a signal is repeated.
            while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &at).is_err() {}
            let now_ns = lock.with(&member, monotonic_ns);
            window.recorder.push(now_ns.saturating_sub(instant_ns));
        }
    };
    let holds = || {
        // If this is refused, so is the other thread's request, which reports it.
        let _ = rt::pin(cpu);
        let member = lock.join(0);
        ready.wait();
        while !window.is_over() {
            let before = window.recorder.len();
            lock.with(&member, || {
                let instant_ns = monotonic_ns() + LEAD_NS;
                instant.store(instant_ns, Ordering::Release);
                start.signal();
                hold_until_after(instant_ns);
            });
            window.await_sample_after(before);
        }
        ended.store(true, Ordering::Release);
        start.signal();
    };
    std::thread::scope(|scope| {
        let (wants, holds) = (rt::spawn(scope, wants), rt::spawn(scope, holds));
        rt::join(holds);
        rt::join(wants)
    })
}
