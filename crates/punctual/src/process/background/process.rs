//! A program in a separate process, restarted if it dies: its faults end only the program, not the
//! app.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use punctual_core::metrics::UPDATE_PERIOD;
use punctual_process::child::BoundedChild;
use punctual_process::limits::lower_limit_of;
use punctual_process::restart::BackOff;
use punctual_process::signals;

pub use punctual_process::limits::Resource;
pub use punctual_process::restart::Restart;

use crate::port::linux::notice;
use crate::report::HelperReport;

/// Interval at which a thread asks the kernel whether its process has ended.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);
// An end is in the figures for other processes within a second.
const _: () = assert!(WATCH_INTERVAL.as_nanos() as u64 + UPDATE_PERIOD < 500_000_000);
/// First and longest pause before a restart.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];
/// Time for the process to end after SIGTERM, without [`HelperCommand::grace`].
const GRACE: Duration = Duration::from_secs(1);
/// Time for it to disappear after SIGKILL, during which a drop waits. Only a system call that the
/// kernel cannot interrupt takes longer.
const KILL_TIMEOUT: Duration = Duration::from_millis(500);

/// The command of a [`HelperProcess`], the limits of its resources, and when it is restarted.
#[derive(Debug)]
pub struct HelperCommand {
    pub(super) command: Command,
    limits: Vec<(Resource, u64)>,
    restart: Restart,
    attempts: u32,
    grace: Duration,
}

impl HelperCommand {
    /// A command without limits, restarted whenever it fails.
    ///
    /// Environment, working directory and standard streams are those of the command; a standard
    /// stream cannot be a pipe. The process also inherits ignored and blocked signals.
    ///
    /// The command starts without a copy of the app's page tables, which would delay tasks by page
    /// faults. This requires a path as its program if its environment is cleared or changes `PATH`,
    /// and excludes [`CommandExt::pre_exec`], `uid` and `gid`: with these, the standard library
    /// calls `fork`.
    #[must_use]
    pub const fn new(command: Command) -> Self {
        Self { command, limits: Vec::new(), restart: Restart::OnFailure, attempts: u32::MAX, grace: GRACE }
    }

    /// Limits a resource of the process, in the unit of the resource. The limit applies from a few
    /// microseconds after the start.
    #[must_use]
    pub fn limit(mut self, resource: Resource, value: u64) -> Self {
        self.limits.push((resource, value));
        self
    }

    /// Restarts the process under this condition, [`Restart::OnFailure`] by default, at most
    /// `attempts` times in a row.
    ///
    /// The first pause is 100 ms. Each further one is twice as long, at most 10 s, until a process
    /// has run for more than 10 s.
    #[must_use]
    pub const fn restart(mut self, restart: Restart, attempts: u32) -> Self {
        (self.restart, self.attempts) = (restart, attempts);
        self
    }

    /// Kills the process if it has not ended after this time, when it is asked to; 1 s by default.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    fn name(&self) -> String {
        let program = std::path::Path::new(self.command.get_program());
        program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
    }

    fn spawn(&mut self) -> io::Result<Child> {
        let mut child = self.command.spawn()?;
        let set_up = || {
            if child.stdin.is_some() || child.stdout.is_some() || child.stderr.is_some() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a standard stream of a helper process is a pipe, which no thread reads or writes; use a \
                     file or `Stdio::null`",
                ));
            }
            self.limits.iter().try_for_each(|&(resource, value)| {
                lower_limit_of(child.id(), resource, value).map_err(|error| {
                    io::Error::new(
                        error.kind(),
                        format!("cannot limit {resource:?} of a helper process: {error}"),
                    )
                })
            })
        };
        if let Err(error) = set_up() {
            // The first error counts.
            let _ = child.end_group(None, Duration::ZERO);
            return Err(error);
        }
        Ok(child)
    }
}

/// A program that runs as a separate process beside the app, such as a transport of topics.
///
/// An ordinary thread of the app starts the process, notices its end within 50 ms, logs a warning
/// and restarts it after a pause. [`Report::helpers`](crate::report::Report::helpers) and `punctual
/// top` count starts and ends.
///
/// The process runs at ordinary priority off the partitions' CPUs, in a process group of its own:
/// Ctrl-C in a terminal reaches only the app. If the process ends, its descendants in the group are
/// killed. When this is dropped, by `#[shutdown]` or at the end of the run, the process gets
/// SIGTERM, and after its [grace](HelperCommand::grace) SIGKILL. If the app is killed, nothing ends
/// the process; transports end when their connection to the app does.
///
/// ```no_run
/// use std::process::Command;
///
/// use punctual::background::{HelperCommand, HelperProcess, Resource};
///
/// // In `init`.
/// let mut command = Command::new("/usr/local/bin/punctual-ros2");
/// command.arg("my-app").env_clear().env("ROS_DOMAIN_ID", "7");
/// let command = HelperCommand::new(command).limit(Resource::OpenFiles, 256);
/// let ros = HelperProcess::start(command.limit(Resource::AddressSpace, 2 << 30))?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HelperProcess {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
    grace: Duration,
}

impl HelperProcess {
    /// Starts the process.
    ///
    /// Real-time safety: allocates and enters the kernel; for `init`.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started or its resources cannot be limited, or if
    /// a standard stream is a pipe.
    pub fn start(command: HelperCommand) -> io::Result<Self> {
        Self::start_ending(command, Some(libc::SIGTERM))
    }

    /// Starts the process, which gets this signal at its end.
    pub(super) fn start_ending(mut command: HelperCommand, signal: Option<i32>) -> io::Result<Self> {
        command.command.process_group(0);
        signals::keep_exit_statuses();
        let shared = Arc::new(Shared { name: command.name(), signal, ..Shared::default() });
        let (grace, of_thread) = (command.grace, Arc::clone(&shared));
        let (sender, started) = mpsc::channel();
        let (owner, ended) = mpsc::channel();
        let thread = super::spawn(&shared.name, move || supervise(command, &of_thread, &sender, owner))?;
        let failed = |_| Err(io::Error::other("the thread of a helper process has panicked"));
        started.recv().unwrap_or_else(failed)?;
        shared.register();
        Ok(Self { shared, thread: Some(thread), ended, grace })
    }

    /// Returns the number of the process, unless it has ended.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.shared.process()
    }

    /// Returns the numbers of starts and ends so far.
    ///
    /// Real-time safety: locks and allocates; for `idle` and background threads.
    #[must_use]
    pub fn report(&self) -> HelperReport {
        self.shared.report()
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        let limit = self.grace.saturating_add(KILL_TIMEOUT);
        match self.ended.recv_timeout(limit) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                // It does not panic; if it did, its process would remain.
                let _ = thread.join();
            }
            Err(RecvTimeoutError::Timeout) => notice::warn(format_args!(
                "the helper process {} does not end at SIGKILL; the app continues without waiting for it",
                self.shared.name
            )),
        }
    }
}

/// Counts of a helper process, written by its thread.
#[derive(Debug, Default)]
struct Shared {
    name: String,
    /// Signal that asks the process to end, if it needs one.
    signal: Option<i32>,
    is_over: AtomicBool,
    /// The number of the process; 0 if it does not run.
    process: AtomicU32,
    starts: AtomicU64,
    ends: AtomicU64,
    last_end: Mutex<Option<ExitStatus>>,
}

impl Shared {
    /// Adds it to the reports. Dropped helpers of one name share an entry.
    fn register(self: &Arc<Self>) {
        let mut all = lock(&ALL);
        let is_dropped = |other: &Arc<Self>| other.name == self.name && Arc::strong_count(other) == 1;
        if let Some(first) = all.iter().position(is_dropped)
            && let Some(next) = all.iter().skip(first + 1).position(is_dropped)
        {
            let [older, newer] = [Arc::clone(&all[first]), all.remove(first + 1 + next)];
            older.starts.fetch_add(newer.starts.load(Ordering::Relaxed), Ordering::Relaxed);
            older.ends.fetch_add(newer.ends.load(Ordering::Relaxed), Ordering::Relaxed);
            *lock(&older.last_end) = *lock(&newer.last_end);
        }
        all.push(Arc::clone(self));
    }

    fn has_started(&self, child: &Child) {
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.process.store(child.id(), Ordering::Relaxed);
    }

    fn process(&self) -> Option<u32> {
        Some(self.process.load(Ordering::Relaxed)).filter(|&process| process != 0)
    }

    fn report(&self) -> HelperReport {
        HelperReport {
            name: self.name.clone(),
            starts: self.starts.load(Ordering::Relaxed),
            ends: self.ends.load(Ordering::Relaxed),
            last_end: lock(&self.last_end).map(|status| status.to_string()),
            process: self.process(),
        }
    }

    /// Sleeps for this time, or until it is over.
    fn pause(&self, pause: Duration) {
        let end = Instant::now() + pause;
        while !self.is_over.load(Ordering::Acquire) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            park_timeout(left);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The helper processes of the program.
static ALL: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// Returns the starts and ends of all helper processes so far. For ordinary threads.
pub(crate) fn totals() -> [u64; 2] {
    lock(&ALL).iter().fold([0; 2], |[starts, ends]: [u64; 2], shared| {
        [
            starts.wrapping_add(shared.starts.load(Ordering::Relaxed)),
            ends.wrapping_add(shared.ends.load(Ordering::Relaxed)),
        ]
    })
}

/// Returns the reports of all helper processes, and forgets those that have been dropped.
pub(crate) fn take_reports() -> Vec<HelperReport> {
    let mut all = lock(&ALL);
    let reports = all.iter().map(|shared| shared.report()).collect();
    all.retain(|shared| Arc::strong_count(shared) > 1);
    reports
}

/// Starts the process and restarts it, until it is over. `_ended` is dropped at the end.
fn supervise(
    mut command: HelperCommand,
    shared: &Shared,
    started: &Sender<io::Result<()>>,
    _ended: Sender<()>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        // The caller waits for it.
        Err(error) => return drop(started.send(Err(error))),
    };
    shared.has_started(&child);
    let _ = started.send(Ok(()));
    let mut back_off = BackOff::new(command.restart, PAUSES[0], PAUSES[1], command.attempts);
    loop {
        let begun = Instant::now();
        let Some(end) = watch(&mut child, shared, command.grace) else { return };
        let mut pause = back_off.pause(end.is_some_and(|status| status.success()), begun.elapsed());
        let status = end.map_or_else(|| "status unknown".to_owned(), |status| status.to_string());
        let mut problem = format!("ended ({status})");
        child = loop {
            let name = &shared.name;
            let Some(length) = pause else {
                notice::warn(format_args!("the helper process {name} has {problem} and is not restarted"));
                return;
            };
            let seconds = length.as_secs_f32();
            notice::warn(format_args!("the helper process {name} has {problem}; restarts in {seconds} s"));
            shared.pause(length);
            if shared.is_over.load(Ordering::Acquire) {
                return;
            }
            match command.spawn() {
                Ok(child) => break child,
                Err(error) => {
                    problem = format!("failed to start ({error})");
                    pause = back_off.pause(false, Duration::ZERO);
                }
            }
        };
        shared.has_started(&child);
    }
}

/// Waits until the process has ended by itself, and returns its status if the kernel knows it.
/// Returns `None` if the app does not need the process anymore, after ending it.
#[expect(clippy::option_option, reason = "the two are unrelated")]
fn watch(child: &mut Child, shared: &Shared, grace: Duration) -> Option<Option<ExitStatus>> {
    let is_over = || shared.is_over.load(Ordering::Acquire);
    // A process that the kernel does not let this thread wait for counts as ended.
    while !is_over() && matches!(child.has_ended(), Ok(false)) {
        park_timeout(WATCH_INTERVAL);
    }
    let was_asked = is_over();
    let ended = match was_asked {
        true => child.end_group(shared.signal, grace),
        // Its descendants.
        false => child.end_group(None, Duration::ZERO),
    };
    shared.process.store(0, Ordering::Relaxed);
    if was_asked {
        return None;
    }
    let status = ended.ok().flatten();
    *lock(&shared.last_end) = status;
    shared.ends.fetch_add(1, Ordering::Relaxed);
    Some(status)
}
