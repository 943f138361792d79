//! The ordinary thread that supervises a run: signals, the time limit, the service manager, and
//! jobs or an `idle` that do not end.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::endless_idle::{EndlessIdle, Idle};
use super::service::{Service, State};
use super::signals::{self, Signals};
use super::unfinished;
use crate::observe::markers::Marks;
use crate::observe::metrics::{self, Metrics, Shown};
use crate::observe::profile;
use crate::port::linux::end_process;
use crate::port::linux::starvation::{StarvationCheck, StarvationChecks};
use crate::port::linux::stderr;
use crate::port::linux::tsc::{self, Tsc};
use crate::start_error::StartError;
use crate::state::fault;
use crate::state::panic_hook::PanicRedirect;
use crate::state::partition::ThreadModel;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;
use crate::stop::StopReason;

/// Time for jobs to finish once the app is stopping, in ticks in which they could run; after that
/// the process is ended.
const JOB_TIMEOUT: Duration = Duration::from_secs(5);
/// The same after a panic.
const JOB_TIMEOUT_AFTER_PANIC: Duration = Duration::from_millis(800);
/// Time for `idle` to return or call `wait_for_event`, in ticks in which it could run: it is an
/// ordinary thread, and the machine may be busy.
const IDLE_TIMEOUT_TICKS: u32 = 20;
/// Interval at which the names of tasks are written into the trace, because a recording may begin
/// at any time.
const TASK_NAMES_INTERVAL: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// State shared by the supervisor and the run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of threads that run tasks and have not ended.
    pub(super) workers: AtomicUsize,
    /// State of `idle`.
    pub(super) idle: Idle,
    /// Disturbances of the polling threads, for the report.
    pub(super) hits: Mutex<Vec<String>>,
    over: AtomicBool,
    /// Memory exported to other processes, if any.
    metrics: OnceLock<Arc<Metrics>>,
}

/// Returns the reason for a stop by this signal.
fn stop_reason(signal: i32) -> &'static StopReason {
    match signal {
        libc::SIGINT => &StopReason::Signal(libc::SIGINT),
        _ => &StopReason::Signal(libc::SIGTERM),
    }
}

/// A running supervisor; stopped and joined when dropped.
pub(super) struct Supervisor {
    runtime: &'static Runtime,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
    signals: Signals,
    notifier: UnixStream,
}

impl Supervisor {
    /// Starts it. `endless_idle` handles an `idle` that does not return.
    pub(super) fn start(
        runtime: &'static Runtime,
        until: Option<Duration>,
        marks: &Arc<Marks>,
        endless_idle: EndlessIdle,
    ) -> Result<Self, StartError> {
        let system = |attempt| move |error| StartError::System { attempt, error };
        let (notifier, notified) = UnixStream::pair().map_err(system("making a socket pair for signals"))?;
        // The notifier may be a job and must not block. A full socket already holds a notification.
        notifier.set_nonblocking(true).map_err(system("making a socket pair for signals"))?;
        let signals = Signals::take(&notifier).map_err(system("installing a signal handler"))?;
        let caught = signals.caught();
        runtime.set_supervisor_fd(notifier.as_raw_fd());
        let progress = Arc::new(Progress::default());
        let polls = Tsc::is_there()
            && runtime.partitions.iter().any(|partition| partition.model == ThreadModel::Polling);
        if polls {
            tsc::start();
        }
        let (progress_of, marks) = (Arc::clone(&progress), Arc::clone(marks));
        let mut watch = Watch {
            runtime,
            polls,
            marks,
            notified,
            caught,
            progress: progress_of,
            until,
            endless_idle,
            service: Service::from_environment(),
            stopping: None,
            had: Duration::ZERO,
            waited_for: StarvationChecks::default(),
            signalled: false,
            named: Instant::now(),
            idle_alone: None,
            ending_since: None,
            told_of_slow_end: false,
        };
        let thread = Builder::new()
            .name("punctual-watch".into())
            .spawn(move || watch.run())
            .map_err(system("starting the supervisor thread"))?;
        Ok(Self { runtime, progress, thread: Some(thread), signals, notifier })
    }

    /// Keeps the memory of `shown` up to date from now on.
    pub(super) fn copy_counts(&self, shown: &Shown) {
        // Only this thread sets it, once.
        let _ = self.progress.metrics.set(Arc::clone(&shown.metrics));
        self.runtime.notify_supervisor();
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.progress.over.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.notifier, b"!");
        self.signals.leave();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the run would have ended anyway.
            let _ = thread.join();
        }
        self.runtime.set_supervisor_fd(-1);
    }
}

/// Calls `watch`, and once more if it panics, which stops the app. Returns whether `watch` has
/// returned; if not, nothing supervises the end of the app.
fn run_restarting_once(runtime: &'static Runtime, mut watch: impl FnMut()) -> bool {
    (0..2).any(|_| fault::contained(runtime, Culprit::Executor, &mut watch).is_some())
}

struct Watch {
    runtime: &'static Runtime,
    until: Option<Duration>,
    endless_idle: EndlessIdle,
    service: Option<Service>,
    /// Last time that the app was seen stopping.
    stopping: Option<Instant>,
    /// Time since the stop in which jobs could have finished.
    had: Duration,
    /// Checks of the threads that the end waits for.
    waited_for: StarvationChecks,
    /// True if a signal has arrived before. The first one may arrive when the app is already
    /// stopping.
    signalled: bool,
    /// Last time that the names of tasks were written into the trace.
    named: Instant,
    /// Present when only `idle` is left: its starvation check, and the ticks in which it could run.
    idle_alone: Option<(StarvationCheck, u32)>,
    /// Time since which neither jobs nor `idle` are left.
    ending_since: Option<Instant>,
    told_of_slow_end: bool,
    /// True if threads read the clock from the time-stamp counter.
    polls: bool,
    marks: Arc<Marks>,
    notified: UnixStream,
    caught: Arc<AtomicUsize>,
    progress: Arc<Progress>,
}

impl Watch {
    /// Supervises until the run is over, even after a panic of its own: only this thread handles
    /// signals.
    fn run(&mut self) {
        let _redirect = PanicRedirect::to(self.runtime);
        signals::receive();
        let ended = run_restarting_once(self.runtime, || self.watch());
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
                self.runtime.stop(stop_reason(signal));
            }
            let mut pause = self.keep_time();
            if self.polls {
                tsc::steer();
                pause = pause.min(tsc::INTERVAL);
            }
            if let Some(metrics) = self.progress.metrics.get() {
                metrics.update();
                pause = pause.min(metrics::INTERVAL);
            }
            pause = pause.min(self.notify_service());
            if self.marks.are_on() {
                if self.named.elapsed() >= TASK_NAMES_INTERVAL {
                    // The report states a failure of the first attempt.
                    let _ = self.marks.name();
                    self.named = Instant::now();
                }
                pause = pause.min(TASK_NAMES_INTERVAL);
            }
            if self.runtime.is_stopping() {
                pause = pause.min(TICK);
                self.enforce_end();
            }
            self.sleep(pause);
        }
        self.notify_service();
    }

    /// Ends the process if jobs or `idle` do not end after the stop.
    fn enforce_end(&mut self) {
        let now = Instant::now();
        let last = self.stopping.replace(now).unwrap_or(now);
        // A pause in which not even this thread ran is not caused by the jobs: the machine may have
        // stalled.
        let pause = now.duration_since(last).min(2 * TICK);
        // Without privileges the idle thread runs jobs as well, in `idle` and before it.
        let jobs = self.progress.workers.load(Ordering::Acquire) > 0 || self.runtime.home.idle.running() > 0;
        if jobs {
            // Threads of other programs, or the host, may have taken their CPUs.
            if self.waited_for.are_not_all_starved(&unfinished::highest_threads(self.runtime)) {
                self.had += pause;
            }
            self.give_up_on_jobs();
            self.idle_alone = None;
            self.ending_since = None;
        } else if self.progress.idle.is_running() {
            let thread = self.runtime.home.idle.thread();
            let (check, had) = self.idle_alone.get_or_insert_with(|| (StarvationCheck::of(thread), 0));
            *had += u32::from(check.is_not_starved());
            if *had > IDLE_TIMEOUT_TICKS {
                self.endless_idle.attempt(&self.progress.idle);
            }
        } else {
            self.warn_of_slow_end();
        }
    }

    /// Reports once what the end waits for. The process is not ended for it, because nothing is at
    /// stake: no job runs anymore, and a hook may have good reasons to take its time.
    fn warn_of_slow_end(&mut self) {
        let since = *self.ending_since.get_or_insert_with(Instant::now);
        if self.told_of_slow_end || since.elapsed() < JOB_TIMEOUT {
            return;
        }
        self.told_of_slow_end = true;
        let (outcome, stage) = (self.runtime.outcome(), self.runtime.stage());
        let signal = if self.signalled { "another signal ends" } else { "two signals end" };
        stderr::line(format_args!(
            "{outcome}, and {stage} has not returned within {} s; {signal} the process",
            JOB_TIMEOUT.as_secs()
        ));
    }

    /// Stops the app at its time limit; returns the time that the supervisor may sleep.
    fn keep_time(&self) -> Duration {
        let Some(until) = self.until else { return Duration::from_secs(3600) };
        if !self.runtime.has_started() {
            return TICK;
        }
        let left = until.saturating_sub(Duration::from_nanos(self.runtime.elapsed()));
        if left.is_zero() && !self.runtime.is_stopping() {
            self.runtime.stop(&StopReason::TimeUp);
        }
        left
    }

    /// Notifies the service manager, if any; returns the time that the supervisor may sleep.
    fn notify_service(&mut self) -> Duration {
        let Some(service) = &mut self.service else { return Duration::MAX };
        let state = match (self.runtime.is_stopping(), self.runtime.has_started()) {
            (true, _) => State::Stopping,
            (false, true) => State::Running,
            (false, false) => State::Starting,
        };
        let longest = service.longest_period().unwrap_or_default();
        let metrics = self.progress.metrics.get();
        service.update(state, Instant::now(), || metrics.map_or(Vec::new(), |it| it.periodic_jobs(longest)))
    }

    fn take_signal(&self) -> Option<i32> {
        match self.caught.swap(0, Ordering::AcqRel) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// Ends the process if jobs could have run for too long after the stop.
    fn give_up_on_jobs(&self) {
        let panicked = self.runtime.has_failed();
        let limit = if panicked { JOB_TIMEOUT_AFTER_PANIC } else { JOB_TIMEOUT };
        if self.had < limit {
            return;
        }
        let (what, threads) = unfinished::describe(self.runtime);
        let outcome = self.runtime.outcome();
        stderr::write_deferred();
        stderr::line(format_args!(
            "{outcome}, and {what} does not end; the process ends under it, without a report: jobs and calls must \
             end within {} s of the stop",
            limit.as_secs_f32()
        ));
        threads.iter().for_each(|thread| stderr::line(format_args!("  {thread}")));
        profile::log_losses(self.runtime);
        end_process(if panicked { 101 } else { 1 });
    }

    /// Sleeps until notified, for at most `pause`.
    fn sleep(&self, pause: Duration) {
        let timeout =
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) as _ };
        let mut fds = [PollFd::new(&self.notified, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            let mut bytes = [0; 64];
            let _ = rustix::io::read(&self.notified, &mut bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use punctual_core::Worker;

    use super::*;
    use crate::model::Model;
    use crate::report::Outcome;
    use crate::state::partition::{PartitionConfig, PartitionState};
    use crate::state::runtime::Options;

    static IDLE: Worker = Worker::new(0);
    static MODEL: Model = Model::new("app", &[], &[], &[], None);
    static RUNTIME: Runtime = Runtime::new(&MODEL, Options::NONE, &[&PART], &PART, &[], None, None);
    static PART: PartitionState = {
        let declared =
            PartitionConfig { name: "partition", model: ThreadModel::Anywhere, cpu: None, stack: None };
        // SAFETY: the worker belongs to no other partition.
        unsafe { PartitionState::new(declared, &RUNTIME, &[], &[&IDLE], &IDLE, None) }
    };

    #[test]
    fn own_panic_stops_app_and_foreign_panic_ends_watch() {
        let mut calls = 0;
        assert!(run_restarting_once(&RUNTIME, || calls += 1));
        assert_eq!((calls, RUNTIME.is_stopping()), (1, false));
        let ended = run_restarting_once(&RUNTIME, || {
            calls += 1;
            if calls == 2 {
                resume_unwind(Box::new("a mistake"));
            }
            assert!(RUNTIME.is_stopping() && RUNTIME.aborts(), "it continues until the end");
        });
        assert_eq!((ended, calls), (true, 3));
        let expected = Outcome::Panicked { task: "the executor".into(), message: "a mistake".into() };
        assert_eq!(RUNTIME.outcome(), expected);
        assert!(!run_restarting_once(&RUNTIME, || resume_unwind(Box::new("another"))));
        assert_eq!(RUNTIME.outcome(), expected, "the first fault counts");
    }
}
