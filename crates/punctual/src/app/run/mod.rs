//! Runs an app, for the generated `run` and `main`.

mod caller;
mod cpu_clock;
mod endless_idle;
mod event_threads;
mod functions;
mod grid_start;
mod idle_watch;
mod linux;
mod plan;
#[cfg(feature = "signals")]
mod signals;
#[cfg(not(feature = "signals"))]
#[path = "no_signals.rs"]
mod signals;
mod stacks;
mod supervised;
mod supervisor;
mod threads;
mod unfinished;
mod virtual_time;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration as StdDuration;

use punctual_core::CurrentWorker;
use punctual_process::signals::survive_file_size_limit;

use self::functions::Functions;
use crate::app::fault;
use crate::app::forked;
use crate::app::guard::Guarded;
use crate::app::panic_hook;
use crate::app::profile::{self, MeasureCosts, Profile};
use crate::app::runtime::{RunGuard, Runtime};
use crate::app::stage::Stage;
use crate::app::stop::Culprit;
use crate::config::Config;
use crate::config::Reporting;
use crate::model;
use crate::port::linux::stack::Bounds;
use crate::port::linux::stderr;
use crate::report::{Report, Settings};
use crate::start_error::StartError;

/// User functions, provided by the generated code. A value of this type holds `init`'s arguments.
pub trait App: Sized {
    /// The part of `init`'s results that no static stores: `idle`'s own locals, and unused ones.
    type Kept;
    /// True if there is an `#[idle]` function.
    const HAS_IDLE: bool;
    /// True if there is a `#[shutdown]` function.
    const HAS_SHUTDOWN: bool;
    /// Names of the resources that both `#[idle]` and `#[shutdown]` use, unless both only read
    /// them.
    const IDLE_AND_SHUTDOWN: &'static [&'static str];

    /// Runs `#[init]` and fills every resource.
    ///
    /// # Safety
    /// No task runs, and the resources are not filled.
    unsafe fn init(self, worker: CurrentWorker) -> Self::Kept;

    /// Runs `#[idle]`.
    ///
    /// # Safety
    /// The resources are filled, and this is called once, on the idle thread, which is `worker`'s.
    unsafe fn idle(worker: CurrentWorker, kept: &mut Self::Kept);

    /// Runs `#[shutdown]`.
    ///
    /// # Safety
    /// The resources are filled. No job runs or will run, and every other thread of the app has
    /// ended, except that `idle` may still be running if
    /// [`IDLE_AND_SHUTDOWN`](Self::IDLE_AND_SHUTDOWN) is empty.
    unsafe fn shutdown();

    /// Drops every resource and every value that no static stores, each within a call of `drops`.
    ///
    /// # Safety
    /// The resources are filled, every other thread of the app has ended, and nothing uses the
    /// resources afterwards.
    unsafe fn drop_resources(kept: Self::Kept, drops: &Drops);
}

/// Drops resources one by one: a destructor that panics is a fault of the app, and does not prevent
/// others from running.
pub struct Drops(&'static Runtime);

impl Drops {
    /// Runs the destructor of a resource.
    pub fn resource(&self, name: &'static str, drop: impl FnOnce()) {
        fault::contained(self.0, Culprit::Resource(name), drop);
    }
}

/// Runs an app until it is shut down, or writes its model and ends the process. `costs` is called for a profile.
pub(crate) fn run<A: App>(
    runtime: &'static Runtime,
    config: Config,
    app: A,
    costs: MeasureCosts,
) -> Result<Report, StartError> {
    run_functions(runtime, config, Functions::of(app), costs)
}

fn run_functions(
    runtime: &'static Runtime,
    config: Config,
    functions: Functions<'_>,
    costs: MeasureCosts,
) -> Result<Report, StartError> {
    // A model, a profile or a message truncated by RLIMIT_FSIZE is an error, and does not end the
    // process. Only a sandbox refuses a handler, and then the signal ends the process as before.
    let _ = survive_file_size_limit();
    if let Some(problem) = config.linux.bad_environment {
        return Err(StartError::Environment(problem.into()));
    }
    if let Some(path) = &config.linux.model {
        model::write(runtime.model, path)?;
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
        false => linux::run(runtime, &config, functions, &taken, costs),
    };
    if ended.is_err() {
        // Other threads may have spawned jobs while the app was about to start. SAFETY: a run that
        // does not start leaves no thread behind.
        drop(unsafe { taken.end() });
    }
    let report = ended?;
    let default = if config.is_program { Reporting::Auto } else { Reporting::Never };
    let declared = runtime.options.report.and_then(|report| Reporting::parse(report.as_ref()));
    config.linux.report.or(declared).unwrap_or(default).write(&report);
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
    // SAFETY: the resources are filled, and this is the only call, on the idle thread, by this function's contract.
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
    let elapsed = StdDuration::from_nanos(runtime.elapsed());
    runtime.enter(Stage::Arguments);
    // Foreign threads are rejected from here on, and the arguments of waiting jobs are dropped
    // before the hook runs. SAFETY: every other thread of the run has ended, by this function's
    // contract.
    let (mut tasks, waiting) = unsafe { taken.end() };
    if let Some(functions) = functions {
        runtime.enter(Stage::Hook);
        // SAFETY: the resources are filled, and every other thread of the run has ended, by this function's contract.
        fault::contained(runtime, Culprit::Handler("shutdown"), || unsafe { (functions.shutdown)() });
        forked::check(runtime);
        runtime.enter(Stage::Resources);
        // SAFETY: the resources are filled, every other thread has ended, and nothing uses them afterwards, by this function's contract.
        fault::contained(runtime, Culprit::Executor, || unsafe { functions.drop_resources(&Drops(runtime)) });
        forked::check(runtime);
    }
    // Late, when everything is safe, because resolving names of functions is slow. SAFETY: every
    // other thread of the run has ended, by this function's contract.
    settings.notes.append(&mut unsafe { guarded.tell(&mut tasks) });
    tasks.sort_by_key(|task| std::cmp::Reverse(task.level));
    let outcome = runtime.outcome();
    runtime.forget_fault();
    // Last, because the hook and destructors may spawn.
    let dropped_jobs = waiting + runtime.dropped();
    let report = Report {
        app: runtime.name,
        virtual_time,
        outcome,
        elapsed,
        settings,
        tasks: tasks.into(),
        dropped_jobs,
        ..Report::default()
    };
    if let Some(profile) = profile {
        // SAFETY: no job can run anymore.
        unsafe { profile.end(&report) };
    }
    report
}
