//! Runs an app in a Linux process.

mod caller;
mod cpu_clock;
mod endless_idle;
mod event_threads;
mod functions;
mod grid_start;
mod idle_watch;
mod linux;
mod model_file;
mod plan;
mod service;
mod services;
#[cfg(feature = "signals")]
mod signals;
/// No signal is handled.
#[cfg(not(feature = "signals"))]
mod signals {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    pub(super) fn receive() {}

    pub(super) struct Signals;

    impl Signals {
        pub(super) fn take(_: &UnixStream) -> std::io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn caught(&self) -> Arc<AtomicUsize> {
            Arc::default()
        }

        pub(super) fn leave(&mut self) {}
    }
}
mod stacks;
mod supervised;
mod supervisor;
mod threads;
mod unfinished;
mod virtual_thread;
mod virtual_time;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration as StdDuration;

use punctual_core::{CurrentWorker, Instant};
use punctual_process::signals::survive_file_size_limit;

use self::functions::Functions;
pub use self::virtual_thread::{VirtualThread, spawn_in_virtual_time};
use crate::background::process::take_reports;
use crate::config::{Config, Reporting};
use crate::observe::guard::Guarded;
use crate::observe::profile::{self, Profile};
use crate::port::linux::stack::Bounds;
use crate::port::linux::stderr;
use crate::report::{Report, Rows, Settings};
use crate::run::{App, Drops};
use crate::start_error::StartError;
use crate::state::runtime::Runtime;
use crate::state::{RunGuard, Stage, fault, forked, panic_hook, thread};
use crate::stop::Culprit;

/// Runs an app until it is shut down, or writes its model and ends the process.
///
/// # Errors
/// Returns an error if it cannot start; then no code of it has run.
pub fn run<A: App>(runtime: &'static Runtime, config: Config, app: A) -> Result<Report, StartError> {
    run_functions(runtime, config, Functions::of(app))
}

fn run_functions(
    runtime: &'static Runtime,
    config: Config,
    functions: Functions<'_>,
) -> Result<Report, StartError> {
    // A model, a profile or a message truncated by RLIMIT_FSIZE is an error, and does not end the
    // process. Only a sandbox refuses a handler, and then the signal ends the process as before.
    let _ = survive_file_size_limit();
    if let Some(problem) = config.platform.bad_environment {
        return Err(StartError::Environment(problem.into()));
    }
    if let Some(path) = &config.platform.model {
        model_file::write(runtime.host.model, path)
            .map_err(|error| StartError::Model { path: path.display().to_string().into(), error })?;
        std::process::exit(0);
    }
    let virtual_time = config.virtual_time;
    let taken = runtime.take(virtual_time)?;
    forked::begin(runtime)
        .map_err(|error| StartError::System { attempt: "registering a handler of forks", error })?;
    panic_hook::install();
    let _watched = stacks::watch(Bounds::of_this_thread());
    let ended = match virtual_time {
        true => virtual_time::run(runtime, &config, functions, &taken),
        false => linux::run(runtime, &config, functions, &taken),
    };
    if ended.is_err() {
        // Other threads may have spawned jobs while the app was about to start. SAFETY: a run that
        // does not start leaves no thread behind.
        drop(unsafe { taken.end() });
    }
    let report = ended?;
    let default = if config.is_program { Reporting::Auto } else { Reporting::Never };
    let declared = runtime.options.report.and_then(|report| Reporting::parse(report.as_ref()));
    config.platform.report.or(declared).unwrap_or(default).write(&report);
    Ok(report)
}

/// The generated `main`.
pub fn main(run: impl FnOnce(Config) -> Result<Report, StartError>) -> ExitCode {
    match run(Config { is_program: true, ..Config::from_env() }) {
        Ok(report) => report.exit_code().into(),
        Err(error) => {
            stderr::line(format_args!("{error}"));
            error.exit_code().into()
        }
    }
}

/// Allocates `'static` storage for values that `init` and `idle` own, before the app starts.
// Not inlined: leak checkers are configured to ignore this function.
#[inline(never)]
pub fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

/// Runs `#[init]` while everything is held. Returns `false` if it panicked; then no resource may be
/// used.
///
/// # Safety
/// As for [`App::init`].
unsafe fn init(runtime: &'static Runtime, me: CurrentWorker, functions: &mut Functions<'_>) -> bool {
    runtime.enter(Stage::Init);
    // SAFETY: no task runs, and the resources are empty, by this function's contract.
    let made = fault::contained(runtime, Culprit::Handler("init"), || unsafe { functions.init(me) });
    runtime.enter(Stage::Tasks);
    forked::check(runtime);
    made.is_some()
}

/// Requests the descriptor of every event source, by the user's `AsFd`.
///
/// # Safety
/// The resources are filled, and no job runs.
unsafe fn refresh_sources(runtime: &'static Runtime) {
    for source in runtime.sources() {
        // SAFETY: the resources are filled, and no job runs, by this function's contract.
        fault::contained(runtime, Culprit::Handler(source.name()), || unsafe { source.refresh() });
    }
}

/// Runs `#[idle]` until it returns, panics, or is left because the app is stopping.
///
/// # Safety
/// As for [`App::idle`].
unsafe fn idle(runtime: &'static Runtime, me: CurrentWorker, functions: &mut Functions<'_>) {
    if !functions.has_idle || runtime.is_stopping() {
        return;
    }
    // SAFETY: the resources are filled, and this is the only call, on the idle thread, by this
    // function's contract.
    let run = || profile::idle(runtime, || unsafe { functions.idle(me) });
    let left = catch_unwind(AssertUnwindSafe(run));
    forked::check(runtime);
    fault::idle_ended(runtime, left);
}

/// Runs `#[shutdown]`, drops the resources, and collects the report.
///
/// # Safety
/// Every thread of the run but this one has ended. `functions` belong to an app whose `init`
/// returned, and then the resources are filled.
unsafe fn finish(
    runtime: &'static Runtime,
    taken: &RunGuard,
    functions: Option<Functions<'_>>,
    virtual_time: bool,
    mut settings: Settings,
    (profile, guarded): (Option<Profile>, &Guarded),
) -> Report {
    // If `init` has panicked, the app has no start.
    let elapsed = functions.as_ref().map_or(0, |_| runtime.elapsed());
    runtime.enter(Stage::Arguments);
    // Foreign threads are rejected from here on, and the arguments of waiting jobs are dropped
    // before the hook runs. SAFETY: every other thread of the run has ended, by this function's
    // contract.
    let (mut tasks, waiting) = unsafe { taken.end() };
    if let Some(functions) = functions {
        runtime.enter(Stage::Hook);
        // SAFETY: the resources are filled, and every other thread of the run has ended, by this
        // function's contract.
        fault::contained(runtime, Culprit::Handler("shutdown"), || unsafe { (functions.shutdown)() });
        forked::check(runtime);
        runtime.enter(Stage::Resources);
        // SAFETY: the resources are filled, every other thread has ended, and nothing uses them
        // afterwards, by this function's contract.
        fault::contained(runtime, Culprit::Executor, || unsafe { functions.drop_resources(&Drops(runtime)) });
        forked::check(runtime);
    }
    // Late, when everything is safe, because resolving names of functions is slow. SAFETY: every
    // other thread of the run has ended, by this function's contract.
    settings.notes.append(&mut unsafe { guarded.add_findings(&mut tasks) });
    tasks.sort_by_key(|task| std::cmp::Reverse(task.level));
    let outcome = runtime.outcome();
    runtime.forget_fault();
    // Last, because the hook and destructors may spawn.
    let dropped_jobs = waiting + runtime.dropped();
    let report = Report {
        app: runtime.name,
        virtual_time,
        outcome,
        elapsed: StdDuration::from_nanos(elapsed),
        settings,
        helpers: take_reports(),
        tasks: Rows::new().fill(tasks.len(), tasks.into_iter()),
        dropped_jobs,
        ..Report::default()
    };
    if let Some(profile) = profile {
        // SAFETY: no job can run anymore.
        unsafe { profile.end(&report) };
    }
    report
}

/// The app whose `init` or task called [`current`](Self::current). Other threads can use it, for
/// example helpers that outlive the call of `init`.
#[derive(Debug, Clone, Copy)]
pub struct RunningApp(&'static Runtime);

impl RunningApp {
    /// Returns the app of the calling thread; `None` on threads that do not belong to an app.
    pub fn current() -> Option<Self> {
        thread::get().map(|(partition, _)| Self(partition.runtime))
    }

    /// Returns `true` if it runs in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.0.home.core.port().is_virtual()
    }

    /// Returns the origin of its periodic releases, which is 0 in virtual time; `None` before, in
    /// particular during `init`.
    pub fn grid(&self) -> Option<Instant> {
        self.0.grid()
    }

    /// Returns the declared task set as JSON, as `PUNCTUAL_MODEL` writes it. Allocates.
    pub fn task_set(&self) -> String {
        model_file::text(self.0.host.model)
    }
}
