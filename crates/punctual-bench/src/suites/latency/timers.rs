//! Kernel timers, handled by tasks and by threads: lateness and intervals.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::{Duration, Instant};
use rustix::thread::ClockId;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::Window;
use super::events::INTERVAL_NS;
use crate::clock::{self, monotonic_ns};
use crate::rt::{self, Lack};
use crate::subject::outcome;

/// The time from the start of a timer to its first expiration, in which the threads fall asleep.
pub(super) const LEAD_NS: u64 = 1_000_000;

/// The quantity that a handler records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The lateness of the handler, once for each expiration, including those that it could not
    /// handle individually.
    Lateness,
    /// The interval since the previous run of the handler.
    Interval,
}

/// A periodic timer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Periodic {
    pub(super) interval_ns: u64,
    pub(super) what: What,
}

/// A periodic timer's descriptor, and its handler's state.
#[derive(Debug)]
struct Handler {
    timer: Arc<Timer>,
    expirations: u64,
    last_ns: u64,
    periodic: Periodic,
    window: Window,
}

/// A kernel timer that may not be running yet.
#[derive(Debug)]
struct Timer {
    descriptor: OwnedFd,
    first_ns: AtomicU64,
}

impl Timer {
    fn new() -> Result<Self, String> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let descriptor = descriptor.map_err(|error| format!("no timerfd: {error}"))?;
        Ok(Self { descriptor, first_ns: AtomicU64::new(0) })
    }

    /// Makes it expire soon, and then after each interval, if that is nonzero.
    fn start(&self, interval_ns: u64) {
        let first_ns = monotonic_ns() + LEAD_NS;
        // Stored before the timer runs, so it is visible at the first expiration.
        self.first_ns.store(first_ns, Ordering::Release);
        let times = Itimerspec { it_value: timespec(first_ns), it_interval: timespec(interval_ns) };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &times).expect("the times are valid");
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Handler {
    fn new(periodic: Periodic, window: &Window) -> Result<Self, String> {
        Ok(Self {
            timer: Arc::new(Timer::new()?),
            expirations: 0,
            last_ns: 0,
            periodic,
            window: window.clone(),
        })
    }

    /// Reads the timer, waiting for it if it has not expired, and records the result; returns
    /// `true` to continue.
    fn handle(&mut self) -> bool {
        let mut count = [0; 8];
        if rustix::io::read(&*self.timer, &mut count).is_err() {
            return !self.window.stop.is_requested();
        }
        let now_ns = monotonic_ns();
        match self.periodic.what {
            What::Lateness => {
                let first_ns = self.timer.first_ns.load(Ordering::Acquire);
                for expiration in self.expirations..self.expirations + u64::from_ne_bytes(count) {
                    let nominal_ns = first_ns + expiration * self.periodic.interval_ns;
                    if self.window.recorder.len() < self.window.until {
                        self.window.recorder.push(now_ns.saturating_sub(nominal_ns));
                    }
                }
            }
            What::Interval if self.last_ns > 0 => {
                self.window.recorder.push(now_ns - self.last_ns);
            }
            What::Interval => {}
        }
        self.expirations += u64::from_ne_bytes(count);
        self.last_ns = now_ns;
        !self.window.is_over()
    }
}

/// Releases a task by the timer.
pub(super) fn tasks(periodic: Periodic, cpu: usize) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        let handler = Handler::new(periodic, window)?;
        let report = bound::run(punctual::Config::new().cpu(cpu), handler);
        outcome(report)
    }
}

#[punctual::app(main = false, monitor = false)]
mod bound {
    use super::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        timer: Arc<Timer>,
        handler: Handler,
    }

    #[init]
    fn init(_: init::Context, handler: Handler) -> (Shared, Local) {
        // Expires once, to check that the task can be released; its first job starts the timer.
        handler.timer.start(0);
        (Shared {}, Local { timer: handler.timer.clone(), handler })
    }

    #[task(binds = timer, priority = 2, local = [timer, handler, begun: bool = false])]
    fn handles(cx: handles::Context) {
        let handler = cx.local.handler;
        if !std::mem::replace(cx.local.begun, true) {
            // Setting the timer again also clears its unread expirations.
            handler.timer.start(handler.periodic.interval_ns);
        } else if !handler.handle() {
            punctual::shutdown();
        }
    }
}

/// Wakes a thread that reads the timer.
pub(super) fn threads(periodic: Periodic, cpu: usize) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        rt::on_thread(cpu, rt::PRIORITY, |lack| {
            let mut handler = Handler::new(periodic, window)?;
            handler.timer.start(periodic.interval_ns);
            while handler.handle() {}
            Ok(lack.clone())
        })
    }
}

/// Spawns a job for one instant after another; each job works for the given time.
pub(crate) fn spawn_at(
    interval_ns: u64,
    work_ns: u64,
    cpu: usize,
) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        let config = punctual::Config::new().cpu(cpu);
        let interval = Duration::from_nanos(interval_ns);
        let report = instants::run(config, window.clone(), interval, work_ns);
        outcome(report)
    }
}

#[punctual::app(main = false, monitor = false)]
mod instants {
    use super::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        window: Window,
        interval: Duration,
        work_ns: u64,
    }

    #[init]
    fn init(_: init::Context, window: Window, interval: Duration, work_ns: u64) -> (Shared, Local) {
        tick::spawn(None).expect("it is spawned once");
        (Shared {}, Local { window, interval, work_ns })
    }

    /// The first job, which has no instant, runs when the app has started.
    #[task(priority = 2, capacity = 2, local = [window, interval, work_ns])]
    fn tick(cx: tick::Context, nominal: Option<Instant>) {
        let now_ns = monotonic_ns();
        if let Some(nominal) = nominal {
            cx.local.window.recorder.push(now_ns.saturating_sub(nominal.as_ticks()));
        }
        if cx.local.window.is_over() {
            return punctual::shutdown();
        }
        let next = match nominal {
            Some(nominal) => nominal + *cx.local.interval,
            None => punctual::now() + Duration::from_nanos(LEAD_NS),
        };
        work_until(now_ns + *cx.local.work_ns);
        tick::spawn_at(next, Some(next)).expect("one waits at a time");
    }
}

/// Releases a periodic task at each instant of its grid.
pub(super) fn periodic(window: &Window, cpu: usize) -> Result<Lack, String> {
    outcome(grid::run(punctual::Config::new().cpu(cpu), window.clone()))
}

#[punctual::app(main = false, monitor = false)]
mod grid {
    use super::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        window: Window,
    }

    #[init]
    fn init(_: init::Context, window: Window) -> (Shared, Local) {
        (Shared {}, Local { window })
    }

    #[task(priority = 2, period = Duration::from_nanos(INTERVAL_NS), local = [window])]
    fn tick(cx: tick::Context) {
        let now_ns = monotonic_ns();
        cx.local.window.recorder.push(now_ns.saturating_sub(cx.released.as_ticks()));
        if cx.local.window.is_over() {
            punctual::shutdown();
        }
    }
}

/// Works until then, but no longer than a job of a measurement does.
fn work_until(ns: u64) {
    while monotonic_ns() < ns {
        std::hint::spin_loop();
    }
}

/// A thread sleeps until one instant after another, and works for the given time at each.
pub(in crate::suites) fn nanosleep(
    interval_ns: u64,
    work_ns: u64,
    cpu: usize,
) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        rt::on_thread(cpu, rt::PRIORITY, |lack| {
            sleep_until_instants(interval_ns, work_ns, window);
            Ok(lack.clone())
        })
    }
}

/// The same at SCHED_DEADLINE with a budget of half of the interval, on any CPU, since the policy
/// does not permit pinning.
pub(super) fn deadline(interval_ns: u64) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        let body = || {
            rt::set_deadline(interval_ns / 2, interval_ns)
                .map_err(|error| format!("no SCHED_DEADLINE: {error}"))?;
            sleep_until_instants(interval_ns, 0, window);
            Ok(Lack::new())
        };
        std::thread::scope(|scope| rt::join(rt::spawn(scope, body)))
    }
}

fn sleep_until_instants(interval_ns: u64, work_ns: u64, window: &Window) {
    let mut nominal_ns = monotonic_ns() + LEAD_NS;
    while !window.is_over() {
        // A wait interrupted by a signal is repeated.
        while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(nominal_ns)).is_err() {}
        let now_ns = monotonic_ns();
        window.recorder.push(now_ns.saturating_sub(nominal_ns));
        work_until(now_ns + work_ns);
        nominal_ns += interval_ns;
    }
}

/// Spawns a job with this delay, repeatedly, and records the actual delay.
pub(super) fn spawn_after(delay_ns: u64, cpu: usize) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        let config = punctual::Config::new().cpu(cpu);
        let delay = Duration::from_nanos(delay_ns);
        let report = delays::run(config, window.clone(), delay);
        outcome(report)
    }
}

#[punctual::app(main = false, monitor = false)]
mod delays {
    use super::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        window: Window,
        delay: Duration,
    }

    #[init]
    fn init(_: init::Context, window: Window, delay: Duration) -> (Shared, Local) {
        delayed::spawn_after(delay, None).expect("it is spawned once");
        (Shared {}, Local { window, delay })
    }

    /// `requested` is `None` the first time, when `init` had to end before the job could run.
    #[task(priority = 2, capacity = 2, local = [window, delay])]
    fn delayed(cx: delayed::Context, requested: Option<u64>) {
        let now = clock::now();
        if let Some(requested) = requested {
            cx.local.window.recorder.push(now - requested);
        }
        if cx.local.window.is_over() {
            return punctual::shutdown();
        }
        delayed::spawn_after(*cx.local.delay, Some(clock::now())).expect("one waits at a time");
    }
}

/// A thread sleeps for the given time, repeatedly.
pub(super) fn sleep(delay_ns: u64, cpu: usize) -> impl FnMut(&Window) -> Result<Lack, String> {
    move |window| {
        rt::on_thread(cpu, rt::PRIORITY, |lack| {
            while !window.is_over() {
                let from = clock::now();
                // A signal that interrupts it also ends the run.
                rt::sleep(std::time::Duration::from_nanos(delay_ns));
                window.recorder.push(clock::now() - from);
            }
            Ok(lack.clone())
        })
    }
}

pub(super) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
