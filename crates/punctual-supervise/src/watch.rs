//! The supervisor.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use punctual_core::heartbeat;
use punctual_process::child::KILL_TIMEOUT;
use punctual_process::restart::{BackOff, Restart};
use punctual_process::scheduling::{Scheduling, set_policy};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::budget::{self, FirstReadings, Job, Level};
use crate::child::{self, Ending, Failed, Process, Waited};
use crate::event::{Action, Event, SuperviseError, signal_name};
use crate::memory::{App, Fault, Memory};
use crate::snapshot::{self, Scene, Snapshots, Writers};
use crate::stack;
use crate::state_directory::StateDirectory;

/// The shortest and the longest interval between checks.
const MIN_INTERVAL: Duration = Duration::from_micros(500);
const MAX_INTERVAL: Duration = Duration::from_millis(10);
/// The shortest interval between two reports of preempted jobs of a task.
const DISPLACED_INTERVAL: Duration = Duration::from_secs(1);
/// The time limit for stacks to be written after the end of the app. Looking up names in the debug
/// information of a large program takes seconds.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval between checks for a stopped process.
const STOPPED: Duration = Duration::from_millis(50);

/// Options of [`supervise`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The condition for restarting the app.
    pub restart: Restart,
    /// The delay before the first restart; each further one is twice as long.
    pub pause: Duration,
    /// The longest delay. After a run longer than this, the delay starts again at `pause`.
    pub longest_pause: Duration,
    /// The maximum number of consecutive restarts.
    pub attempts: u32,
    /// The time limit for an app that was asked to stop, after which it is killed.
    pub grace: Duration,
    /// The time limit for a process stopped by a signal, after which it is killed.
    pub stopped: Duration,
    /// The directory for stacks.
    pub snapshots: PathBuf,
    /// The kernel priority of the supervisor. It is raised above the app's, if necessary.
    pub priority: u8,
    /// The CPUs on which the app is started; by default those of the supervisor.
    pub cpus: Option<Vec<usize>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            restart: Restart::Never,
            pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            attempts: 5,
            // The app itself gives its jobs five seconds.
            grace: Duration::from_secs(8),
            stopped: Duration::from_secs(1),
            snapshots: PathBuf::from("."),
            priority: 98,
            cpus: None,
        }
    }
}

/// Runs the command that `make` returns, and supervises it until it has ended and is not restarted.
/// Returns the last exit status.
///
/// `stop` is a signal that the supervisor has received, or 0; a signal handler may set it. The app
/// is then asked to stop, and is not restarted. `on_event` is called from this thread, which
/// becomes a real-time thread, if permitted, and leaves the CPUs of the app; both are reverted at
/// the end of this call. The started process is an ordinary process.
///
/// # Errors
/// The command cannot be started, or memory cannot be shared with it. The app is still there 10 s
/// after SIGKILL, because it is in a system call that the kernel cannot interrupt, or another
/// process traces it and has not collected its status 10 s after its end; this call returns after
/// another 10 s, and the app is no longer supervised. Any other failure is reported as
/// [`Event::Lacks`].
pub fn supervise(
    make: &dyn Fn() -> io::Result<Command>,
    settings: &Settings,
    stop: &AtomicI32,
    on_event: &mut dyn FnMut(Event),
) -> Result<ExitStatus, SuperviseError> {
    let mut place = Place::take(settings, on_event)?;
    let state = StateDirectory::new();
    if let Err(error) = &state {
        on_event(Event::Lacks {
            what: format!(
                "no shared memory, so the state that the app keeps for its next start is lost: {error}"
            ),
        });
    }
    let state = state.as_ref().ok().map(StateDirectory::path);
    let mut back_off =
        BackOff::new(settings.restart, settings.pause, settings.longest_pause, settings.attempts);
    loop {
        let begun = Instant::now();
        let status = Run::start(make, settings, state, &mut place, on_event)?.watch(stop)?;
        let pause = back_off.pause(status.success(), begun.elapsed());
        let (Some(pause), 0) = (pause, stop.load(Ordering::Relaxed)) else { return Ok(status) };
        on_event(Event::Restarts { after: pause });
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if stop.load(Ordering::Relaxed) != 0 {
                return Ok(status);
            }
            std::thread::sleep(MAX_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// The current and the original scheduling of the calling thread.
struct Place {
    cpus: CpuSet,
    policy: Option<Scheduling>,
    priority: u8,
    oom: i32,
}

const OOM: &str = "/proc/self/oom_score_adj";

impl Place {
    fn take(settings: &Settings, on_event: &mut dyn FnMut(Event)) -> Result<Self, SuperviseError> {
        let cpus = sched_getaffinity(None).map_err(|error| SuperviseError::System {
            attempt: "reading the CPU affinity",
            error: error.into(),
        })?;
        let policy = Scheduling::current().ok();
        let oom = fs::read_to_string(OOM).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let mut place = Self { cpus, policy, priority: 0, oom };
        if let Err(error) = place.raise(settings.priority) {
            on_event(Event::Lacks {
                what: format!(
                    "the supervisor has no real-time priority ({error}), so a real-time app can starve it: \
                     run it as root, or with an rtprio limit"
                ),
            });
        }
        // Both help if memory is scarce, and are harmless otherwise.
        let _ = fs::write(OOM, "-900");
        // SAFETY: the call takes an integer only.
        unsafe { libc::mlockall(libc::MCL_CURRENT) };
        Ok(place)
    }

    /// Threads and processes started by this thread get an ordinary priority.
    fn raise(&mut self, priority: u8) -> io::Result<()> {
        let priority = priority.clamp(1, 99);
        if priority > self.priority {
            set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, i32::from(priority))?;
            self.priority = priority;
        }
        Ok(())
    }

    /// Leaves the app's CPUs, and raises the priority above the app's.
    fn beside(&mut self, app: &App, on_event: &mut dyn FnMut(Event)) {
        let mut others = self.cpus;
        app.cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| others.unset(cpu));
        if others.count() == 0 {
            on_event(Event::Lacks {
                what: "the supervisor shares a CPU with the app, since no other is available".into(),
            });
        } else if let Err(error) = sched_setaffinity(None, &others) {
            on_event(Event::Lacks {
                what: format!("the supervisor cannot leave the CPUs of the app: {error}"),
            });
        }
        let above = u8::try_from(app.priority.saturating_add(1).min(99)).unwrap_or(99);
        if self.priority > 0 && self.raise(above).is_err() {
            on_event(Event::Lacks {
                what: format!("the supervisor cannot have priority {above}, above the app's"),
            });
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The original values, which cannot be refused.
        let _ = self.policy.map(|policy| policy.apply());
        let _ = sched_setaffinity(None, &self.cpus);
        let _ = fs::write(OOM, self.oom.to_string());
        // SAFETY: the call has no arguments.
        unsafe { libc::munlockall() };
    }
}

/// Returns the current time, in ns of `CLOCK_MONOTONIC`.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One run of the app.
struct Run<'a> {
    settings: &'a Settings,
    place: &'a mut Place,
    on_event: &'a mut dyn FnMut(Event),
    memory: Memory,
    process: Process,
    snapshots: Snapshots,
    writers: Writers,
    app: Option<Arc<App>>,
    /// `true` if the running process is not the one that it claims to be.
    impostor: bool,
    interval: Duration,
    /// By level, the number of the last job that was reported as over its budget, and as preempted.
    reported: BTreeMap<usize, u64>,
    displaced: BTreeMap<usize, u64>,
    /// By task, the time of the last report of a preempted job.
    warned: BTreeMap<u32, Instant>,
    first_readings: FirstReadings,
    /// `true` if an unknown CPU time was reported.
    reported_unknown: bool,
    ending: Ending,
    faulted: bool,
    /// The time at which the process was found stopped, and the time of the last check.
    stopped: Option<Instant>,
    last_check: Instant,
    memory_kills: Option<u64>,
}

impl<'a> Run<'a> {
    fn start(
        make: &dyn Fn() -> io::Result<Command>,
        settings: &'a Settings,
        state: Option<&Path>,
        place: &'a mut Place,
        on_event: &'a mut dyn FnMut(Event),
    ) -> Result<Self, SuperviseError> {
        let memory = Memory::new()
            .map_err(|error| SuperviseError::System { attempt: "creating shared memory", error })?;
        let mut cpus = place.cpus;
        if let Some(wanted) = &settings.cpus {
            cpus = CpuSet::new();
            wanted.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| cpus.set(cpu));
        }
        let memory_kills = child::killed_for_memory();
        let mut command =
            make().map_err(|error| SuperviseError::System { attempt: "preparing the command", error })?;
        match state {
            Some(directory) => command.env(heartbeat::STATE_DIRECTORY, directory),
            None => command.env_remove(heartbeat::STATE_DIRECTORY),
        };
        let program = command.get_program().to_string_lossy().into_owned();
        let process = Process::start(command, &memory, cpus, place.oom)
            .map_err(|error| SuperviseError::Start { program, error })?;
        on_event(Event::Started { process: process.id() });
        Ok(Self {
            settings,
            place,
            on_event,
            snapshots: Snapshots::new(&settings.snapshots, process.id()),
            memory,
            process,
            writers: Writers::default(),
            app: None,
            impostor: false,
            interval: MAX_INTERVAL,
            reported: BTreeMap::new(),
            displaced: BTreeMap::new(),
            warned: BTreeMap::new(),
            first_readings: FirstReadings::default(),
            reported_unknown: false,
            ending: Ending::default(),
            faulted: false,
            stopped: None,
            last_check: Instant::now(),
            memory_kills,
        })
    }

    /// Watches the process until it has ended.
    fn watch(mut self, stop: &AtomicI32) -> Result<ExitStatus, SuperviseError> {
        let failed = |error| SuperviseError::System { attempt: "waiting for the app", error };
        let status = loop {
            match self.process.wait(self.interval).map_err(failed)? {
                Waited::Ended(status) => break status,
                Waited::Held => {
                    self.ending.held.get_or_insert_with(Instant::now);
                }
                Waited::Running => self.check(stop),
            }
            match self.ending.failed(self.settings.grace, Instant::now()) {
                Some(Failed::Request) => self.kill("it did not end after a request to stop".into()),
                Some(Failed::Kill) => return Err(failed(self.unkillable())),
                Some(Failed::Release) => return Err(failed(self.held())),
                None => {}
            }
        };
        for what in self.writers.finish(WRITE_TIMEOUT) {
            (self.on_event)(Event::Lacks { what });
        }
        let more = child::killed_for_memory() > self.memory_kills;
        let out_of_memory = status.signal() == Some(libc::SIGKILL) && self.ending.killed.is_none() && more;
        (self.on_event)(Event::Ended { status, out_of_memory });
        Ok(status)
    }

    /// Checks the running process, and asks it to stop if this process was asked to.
    fn check(&mut self, stop: &AtomicI32) {
        if stop.load(Ordering::Relaxed) != 0 && self.ending.asked.is_none() {
            self.ask_to_stop();
        }
        self.meet();
        self.check_for_fault();
        self.check_jobs();
        self.check_if_stopped();
        stack::release();
    }

    /// Detects a new app.
    fn meet(&mut self) {
        if self.memory.is_running() == self.app.is_some() || self.impostor {
            return;
        }
        self.app = self.memory.app().map(Arc::new);
        self.interval = MAX_INTERVAL;
        let Some(app) = &self.app else { return };
        if !self.process.is_ancestor_of(app.process) {
            let what = "its process ID is wrong, so it is not supervised".into();
            (self.on_event)(Event::Lacks { what });
            (self.app, self.impostor) = (None, true);
            return;
        }
        let budgets = app.tasks.iter().filter_map(|task| task.budget);
        if let Some(shortest) = budgets.min() {
            self.interval = Duration::from_nanos(shortest / 8).clamp(MIN_INTERVAL, MAX_INTERVAL);
        }
        self.place.beside(app, self.on_event);
        let with = app.tasks.iter().filter(|task| task.budget.is_some()).map(|task| task.name.clone());
        (self.on_event)(Event::Watches {
            app: app.name.clone(),
            budgets: with.collect(),
            interval: self.interval,
        });
    }

    fn jobs(&self, clocks: bool) -> Vec<Job> {
        let levels = self.memory.levels(clocks);
        budget::jobs(&levels, now())
    }

    /// Returns the running jobs with their CPU time, from the app or, without an answer, from the
    /// kernel.
    fn measured_jobs(&mut self, app: &App) -> Vec<Job> {
        if self.memory.ask_for_clocks() {
            let mut jobs = self.jobs(true);
            jobs.iter_mut().for_each(|job| self.first_readings.complete(job));
            return jobs;
        }
        // A job may prevent the app from answering. The CPU time at the last tick is a lower bound.
        let mut levels = self.memory.levels(false);
        for level in &mut levels {
            level.clock = level.running.and_then(|job| snapshot::cpu_time_at_tick(app.process, job.thread));
        }
        // Read the levels after the clocks: otherwise the CPU time of called jobs would count
        // toward their caller.
        for (level, again) in levels.iter_mut().zip(self.memory.levels(false)) {
            let is_same = level.running.map(|job| job.number) == again.running.map(|job| job.number);
            *level = Level { clock: level.clock.filter(|_| is_same), ..again };
        }
        budget::jobs(&levels, now())
    }

    fn check_jobs(&mut self) {
        let Some(app) = self.app.clone() else { return };
        if self.faulted || self.ending.killed.is_some() {
            return;
        }
        let task_of = |job: &Job| app.tasks.get(job.running.task as usize);
        let budget_of = |job: &Job| task_of(job).and_then(|task| task.budget);
        let needs_clock = |job: &Job| {
            let is_reported = self.reported.get(&job.level.index) == Some(&job.running.number);
            let is_long = || budget_of(job).is_some_and(|budget| job.elapsed > budget);
            !is_reported && (is_long() || budget_of(job).is_some() && self.first_readings.lacks(job))
        };
        if !self.jobs(false).iter().any(needs_clock) {
            return;
        }
        let jobs = self.measured_jobs(&app);
        for job in &jobs {
            let (Some(task), Some(budget)) = (task_of(job), budget_of(job)) else { continue };
            if job.elapsed <= budget {
                continue;
            }
            let (number, elapsed) = (job.running.number, Duration::from_nanos(job.elapsed));
            let (name, level, budget_time) = (task.name.clone(), task.level, Duration::from_nanos(budget));
            let Some(cpu) = job.cpu else {
                if !std::mem::replace(&mut self.reported_unknown, true) {
                    let what = format!(
                        "the CPU time of {name} is unknown, and its budget is not enforced meanwhile"
                    );
                    (self.on_event)(Event::Lacks { what });
                }
                continue;
            };
            let executed = Duration::from_nanos(cpu);
            if cpu <= budget {
                let is_new = self.displaced.insert(job.level.index, number) != Some(number);
                let warned = self
                    .warned
                    .get(&job.running.task)
                    .is_some_and(|warned| warned.elapsed() < DISPLACED_INTERVAL);
                if is_new && !warned {
                    self.warned.insert(job.running.task, Instant::now());
                    let state = snapshot::whereabouts(app.process, job.running.thread);
                    let budget = budget_time;
                    (self.on_event)(Event::Displaced { task: name, level, executed, elapsed, budget, state });
                }
                continue;
            }
            if self.reported.insert(job.level.index, number) == Some(number) {
                continue;
            }
            let action = match task.policy {
                heartbeat::STOP => Action::Stop,
                heartbeat::KILL => Action::Kill,
                _ => Action::Report,
            };
            let what = format!("a job of {name} has used more CPU time than its budget");
            let scene = self.scene(&app, &jobs, job.running.thread, None, what);
            match action {
                Action::Report => {}
                Action::Stop => self.ask_to_stop(),
                Action::Kill => self.kill_at_once(),
            }
            let snapshot = self.write(scene);
            let budget = budget_time;
            (self.on_event)(Event::OverBudget {
                task: name,
                level,
                executed,
                elapsed,
                budget,
                action,
                snapshot,
            });
        }
    }

    fn check_for_fault(&mut self) {
        let Some(fault) = self.memory.fault().filter(|_| !self.faulted) else { return };
        self.faulted = true;
        let Some(app) = self.app.clone() else { return self.memory.seen() };
        let Fault { signal, thread, address, context } = fault;
        let jobs = self.jobs(false);
        let own = jobs.iter().rev().find(|job| job.running.thread == thread);
        let task = own.and_then(|job| app.tasks.get(job.running.task as usize)).map(|task| task.name.clone());
        let at = if address == 0 { String::new() } else { format!(" at address {address:#x}") };
        let what = format!("{}{at}", signal_name(signal));
        let scene = self.scene(&app, &jobs, thread, Some(context), what);
        self.memory.seen();
        let snapshot = self.write(scene);
        (self.on_event)(Event::Crash { signal, task, thread, snapshot });
    }

    /// Returns a snapshot of the app. Stops the thread for a moment.
    fn scene(&self, app: &Arc<App>, jobs: &[Job], thread: u32, context: Option<u64>, what: String) -> Scene {
        let state = snapshot::state(app.process, thread);
        // The number comes from the app, and may belong to a thread of another process.
        let is_own = fs::exists(format!("/proc/{}/task/{thread}", app.process)).unwrap_or(false);
        let stopped = match i32::try_from(thread) {
            Ok(number) if is_own => stack::capture(app.process, number, context),
            _ => Err("it is not a thread of the app".into()),
        };
        Scene { what, app: Arc::clone(app), jobs: jobs.to_vec(), thread, state, stopped }
    }

    /// Writes the snapshot on an ordinary thread, since looking up names is slow.
    fn write(&mut self, scene: Scene) -> Option<PathBuf> {
        let file = self.snapshots.next().transpose()?;
        let path = file.and_then(|(file, path)| {
            self.writers.start(path.clone(), move || scene.write(file))?;
            Ok(path)
        });
        match path {
            Ok(path) => Some(path),
            Err(error) => {
                let directory = self.settings.snapshots.display();
                (self.on_event)(Event::Lacks {
                    what: format!("no stack is written to {directory}: {error}"),
                });
                None
            }
        }
    }

    fn check_if_stopped(&mut self) {
        if self.last_check.elapsed() < STOPPED {
            return;
        }
        self.last_check = Instant::now();
        let process = self.app.as_ref().map_or(self.process.id() as i32, |app| app.process);
        match (child::is_stopped(process), self.stopped) {
            (true, None) => {
                self.stopped = Some(Instant::now());
                (self.on_event)(Event::Paused);
            }
            (true, Some(since)) if since.elapsed() > self.settings.stopped => {
                self.kill("it was stopped by a signal, and not continued in time".into());
            }
            (false, Some(_)) => {
                self.stopped = None;
                (self.on_event)(Event::Continued);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn ask_to_stop(&mut self) {
        self.ending.asked.get_or_insert_with(Instant::now);
        let app = self.app.as_ref().map(|app| app.process);
        self.process.signal(app, Signal::TERM);
        // A stopped process handles no signal.
        self.process.signal(app, Signal::CONT);
    }

    fn kill(&mut self, why: String) {
        if self.ending.killed.is_none() {
            (self.on_event)(Event::Kills { why });
            self.kill_at_once();
        }
    }

    fn kill_at_once(&mut self) {
        self.ending.killed.get_or_insert_with(Instant::now);
        self.process.signal(self.app.as_ref().map(|app| app.process), Signal::KILL);
    }

    fn unkillable(&self) -> io::Error {
        let (process, limit) = (self.process.id(), KILL_TIMEOUT.as_secs());
        let text = format!(
            "process {process} is still there {limit} s after SIGKILL, in a system call that the kernel \
             cannot interrupt: look at /proc/{process}/stack"
        );
        io::Error::new(io::ErrorKind::TimedOut, text)
    }

    fn held(&self) -> io::Error {
        let (process, limit) = (self.process.id(), KILL_TIMEOUT.as_secs());
        let text = format!(
            "process {process} ended {limit} s ago, and another process that traces it has not collected its \
             status: end the process that /proc/{process}/status names as TracerPid"
        );
        io::Error::new(io::ErrorKind::TimedOut, text)
    }
}
