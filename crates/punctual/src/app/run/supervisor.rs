//! The ordinary thread that watches over a run: signals, the time limit, and an end that does not come.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::endless_idle::{Idle, LastResort};
use super::signals::Signals;
use super::unfinished;
use crate::app::fault;
use crate::app::panic_hook::Leaves;
use crate::app::partition::Style;
use crate::app::runtime::Runtime;
use crate::app::start_error::StartError;
use crate::app::stop::Cause;
use crate::app::stop::Culprit;
use crate::app::trace_markers::Marks;
use crate::port::linux::end_process;
use crate::port::linux::starvation::Chances;
use crate::port::linux::stderr;
use crate::port::linux::tsc::{self, Tsc};

/// How long jobs may take to finish once the app is stopping, before the process is ended under them.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same after a panic.
const PATIENCE_AFTER_PANIC: Duration = Duration::from_millis(800);
/// How long an `idle` that never returns gets to call `wait_for_event`, in ticks in which it could. It is an ordinary
/// thread, and the machine may be busy.
const PATIENCE_WITH_IDLE: u32 = 20;
/// How often tasks are named in the trace: a recording may begin at any time.
const NAMES: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// What the supervisor and the run tell each other.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Threads running tasks that have not ended.
    pub(super) workers: AtomicUsize,
    /// Whether `idle` is still on its thread.
    pub(super) idle: Idle,
    over: AtomicBool,
}

/// Why an app stops that gets one of the signals taken.
fn cause(signal: i32) -> &'static Cause {
    match signal {
        libc::SIGINT => &Cause::Signal(libc::SIGINT),
        _ => &Cause::Signal(libc::SIGTERM),
    }
}

/// A running supervisor; ended and joined when dropped.
pub(super) struct Supervisor {
    runtime: &'static Runtime,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
    signals: Signals,
    bell: UnixStream,
}

impl Supervisor {
    /// Starts it. `last_resort` is for an `idle` that does not return.
    pub(super) fn start(
        runtime: &'static Runtime,
        until: Option<Duration>,
        marks: &Arc<Marks>,
        last_resort: LastResort,
    ) -> Result<Self, StartError> {
        let system = |attempt| move |error| StartError::System { attempt, error };
        let (bell, ringing) = UnixStream::pair().map_err(system("making a socket pair for signals"))?;
        // Who rings, perhaps from a job, does not wait; if there is no room it is ringing.
        bell.set_nonblocking(true).map_err(system("making a socket pair for signals"))?;
        let signals = Signals::take(&bell).map_err(system("installing a signal handler"))?;
        let caught = signals.caught();
        runtime.set_bell(bell.as_raw_fd());
        let progress = Arc::new(Progress::default());
        let polls = Tsc::is_there() && runtime.parts.iter().any(|part| part.style == Style::Polling);
        if polls {
            tsc::start();
        }
        let (progress_of, marks) = (Arc::clone(&progress), Arc::clone(marks));
        let mut watch = Watch {
            runtime,
            polls,
            marks,
            ringing,
            caught,
            progress: progress_of,
            until,
            last_resort,
            stopping_since: None,
            signalled: false,
            named: Instant::now(),
            idle_alone: None,
        };
        let thread = Builder::new()
            .name("punctual-watch".into())
            .spawn(move || watch.keep_on())
            .map_err(system("starting the supervisor thread"))?;
        Ok(Self { runtime, progress, thread: Some(thread), signals, bell })
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.progress.over.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.bell, b"!");
        self.signals.leave();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, the run is over all the same.
            let _ = thread.join();
        }
        self.runtime.set_bell(-1);
    }
}

/// Calls `watch`, and once more if it panics, for which the app ends; tells whether it has returned. If not there is nobody
/// to see to the end of the app.
fn twice(runtime: &'static Runtime, mut watch: impl FnMut()) -> bool {
    (0..2).any(|_| fault::contained(runtime, Culprit::Executor, &mut watch).is_some())
}

struct Watch {
    runtime: &'static Runtime,
    until: Option<Duration>,
    last_resort: LastResort,
    stopping_since: Option<Instant>,
    /// Whether a signal has come before. The first one may come when the app stops already.
    signalled: bool,
    /// When the tasks were last named in the trace.
    named: Instant,
    /// Since when nobody but `idle` runs, and how often it could have.
    idle_alone: Option<(Chances, u32)>,
    /// Whether there are threads that tell the time by the time-stamp counter.
    polls: bool,
    marks: Arc<Marks>,
    ringing: UnixStream,
    caught: Arc<AtomicUsize>,
    progress: Arc<Progress>,
}

impl Watch {
    /// Watches until the run is over, whatever happens: without this thread nobody would see a signal.
    fn keep_on(&mut self) {
        let _leaves = Leaves::to(self.runtime);
        let ended = twice(self.runtime, || self.watch());
        stderr::write_deferred();
        if !ended {
            end_process(101);
        }
    }

    fn watch(&mut self) {
        while !self.progress.over.load(Ordering::Acquire) {
            stderr::write_deferred();
            if let Some(signal) = self.take_signal() {
                if std::mem::replace(&mut self.signalled, true) {
                    stderr::line(format_args!("second signal; the process ends now"));
                    end_process(128 + signal);
                }
                self.runtime.stop(cause(signal));
            }
            let mut pause = self.keep_time();
            if self.polls {
                tsc::steer();
                pause = pause.min(tsc::INTERVAL);
            }
            if self.marks.are_on() {
                if self.named.elapsed() >= NAMES {
                    self.marks.name();
                    self.named = Instant::now();
                }
                pause = pause.min(NAMES);
            }
            if self.runtime.is_stopping() {
                pause = pause.min(TICK);
                self.see_to_the_end();
            }
            self.sleep(pause);
        }
    }

    /// Ends the process if what is left of the app, which stops, does not end.
    fn see_to_the_end(&mut self) {
        let since = *self.stopping_since.get_or_insert_with(Instant::now);
        // Without privileges the idle thread runs jobs as well, in `idle` and before it.
        let jobs = self.progress.workers.load(Ordering::Acquire) > 0 || self.runtime.home.idle.running() > 0;
        if jobs {
            self.give_up_on_jobs(since);
            self.idle_alone = None;
        } else if self.progress.idle.is_running() {
            let thread = self.runtime.home.idle.thread();
            let (chances, had) = self.idle_alone.get_or_insert_with(|| (Chances::of(thread), 0));
            *had += u32::from(chances.had_one());
            if *had > PATIENCE_WITH_IDLE {
                self.last_resort.attempt(&self.progress.idle);
            }
        }
    }

    /// Stops the app when its time is up; returns how long until there is something to see to.
    fn keep_time(&self) -> Duration {
        let Some(until) = self.until else { return Duration::from_secs(3600) };
        if !self.runtime.has_started() {
            return TICK;
        }
        let left = until.saturating_sub(Duration::from_nanos(self.runtime.elapsed()));
        if left.is_zero() && !self.runtime.is_stopping() {
            self.runtime.stop(&Cause::TimeUp);
        }
        left
    }

    fn take_signal(&self) -> Option<i32> {
        match self.caught.swap(0, Ordering::AcqRel) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// Ends the process if jobs have been running for too long since the app began to stop.
    fn give_up_on_jobs(&self, since: Instant) {
        let panicked = self.runtime.aborts();
        if since.elapsed() < if panicked { PATIENCE_AFTER_PANIC } else { PATIENCE } {
            return;
        }
        let (what, threads) = unfinished::describe(self.runtime);
        let outcome = self.runtime.outcome();
        stderr::write_deferred();
        stderr::line(format_args!("{outcome}, and {what} does not end; the process ends under it"));
        threads.iter().for_each(|thread| stderr::line(format_args!("  {thread}")));
        end_process(if panicked { 101 } else { 1 });
    }

    /// Sleeps until rung for, at most `pause`.
    fn sleep(&self, pause: Duration) {
        let timeout =
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) as _ };
        let mut fds = [PollFd::new(&self.ringing, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            let mut rung = [0; 64];
            let _ = rustix::io::read(&self.ringing, &mut rung);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use punctual_core::Worker;

    use super::*;
    use crate::app::partition::{Declared, Part};
    use crate::app::report::Outcome;
    use crate::app::runtime::Options;

    static IDLE: Worker = Worker::new(0);
    const OPTIONS: Options = Options {
        priority_base: None,
        stack: None,
        wake_latency: None,
        strict: false,
        trace: false,
        report: None,
    };
    static RUNTIME: Runtime = Runtime::new("app", OPTIONS, &[&PART], &PART, &[], None, None);
    static PART: Part = {
        let declared = Declared { name: "part", style: Style::Anywhere, cpu: None, stack: None };
        // SAFETY: the worker is of no other partition.
        unsafe { Part::new(declared, &RUNTIME, &[], &[&IDLE], &IDLE, None) }
    };

    #[test]
    fn its_own_panic_ends_the_app_and_another_the_watch() {
        let mut calls = 0;
        assert!(twice(&RUNTIME, || calls += 1));
        assert_eq!((calls, RUNTIME.is_stopping()), (1, false));
        let ended = twice(&RUNTIME, || {
            calls += 1;
            if calls == 2 {
                resume_unwind(Box::new("a mistake"));
            }
            assert!(RUNTIME.is_stopping() && RUNTIME.aborts(), "it goes on to see to the end");
        });
        assert_eq!((ended, calls), (true, 3));
        let expected = Outcome::Panicked { task: "the executor".into(), message: "a mistake".into() };
        assert_eq!(RUNTIME.outcome(), expected);
        assert!(!twice(&RUNTIME, || resume_unwind(Box::new("another"))));
        assert_eq!(RUNTIME.outcome(), expected, "the first fault counts");
    }
}
