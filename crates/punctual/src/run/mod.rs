//! Running an app: what the generated `run` and `main` call.

mod linux;
mod plan;
mod stacks;
mod start_error;
mod stuck;
mod supervisor;
mod threads;
mod virtual_run;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration as StdDuration;

use punctual_core::CurrentWorker;

pub use start_error::StartError;

use crate::config::Platform;
use crate::current::LeaveIdle;
use crate::linux::stack::{Bounds, Watched};
use crate::report::{Report, Settings};
use crate::runtime::{Runtime, Taken};
use crate::{Config, forked, job};

/// The user's functions, as the generated code provides them. A value of it holds `init`'s arguments.
pub trait App: Sized {
    /// What `init` returned and no static holds: `idle`'s own locals, and those nobody uses.
    type Kept;
    /// Whether there is an `#[idle]` function.
    const HAS_IDLE: bool;
    /// Whether it uses shared resources.
    const IDLE_SHARES: bool;

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
    /// The resources are filled, and every other thread of the app has ended.
    unsafe fn shutdown();

    /// Drops every resource.
    ///
    /// # Safety
    /// As for [`shutdown`](Self::shutdown), and nothing uses the resources afterwards.
    unsafe fn drop_resources();
}

/// Runs an app until it is shut down.
pub fn run<A: App>(runtime: &'static Runtime, config: Config, app: A) -> Result<Report, StartError> {
    if let Some(problem) = config.bad_environment {
        return Err(StartError::Environment(problem));
    }
    let virtual_time = config.platform == Platform::Virtual;
    let taken = runtime.take(virtual_time).ok_or(StartError::AlreadyRunning(runtime.name))?;
    forked::begin(runtime)
        .map_err(|error| StartError::System { attempt: "registering a handler of forks", error })?;
    let _watched = Bounds::of_this_thread().and_then(|stack| Watched::begin(stack).ok());
    let ended = match virtual_time {
        true => virtual_run::run(runtime, &config, app, &taken),
        false => linux::run(runtime, &config, app, &taken),
    };
    if ended.is_err() {
        // Other threads may have spawned something while it was about to start.
        // SAFETY: a run that does not start leaves no thread behind.
        drop(unsafe { taken.end() });
    }
    ended
}

/// The generated `main`.
pub fn main(run: impl FnOnce(Config) -> Result<Report, StartError>) -> ExitCode {
    match run(Config::from_env()) {
        Ok(report) => {
            if std::env::var_os("PUNCTUAL_REPORT").is_some_and(|value| value != "0") {
                eprintln!("\n{report}");
            }
            report.exit_code().into()
        }
        Err(error) => {
            eprintln!("punctual: {error}");
            error.exit_code().into()
        }
    }
}

/// Runs `#[init]` with everything held back; `None` if it panicked, and then no resource may be used.
///
/// # Safety
/// As for [`App::init`].
unsafe fn init<A: App>(runtime: &'static Runtime, me: CurrentWorker, app: A) -> Option<A::Kept> {
    // SAFETY: by this function's contract.
    let made = catch_unwind(AssertUnwindSafe(|| unsafe { app.init(me) }));
    forked::check(runtime);
    match made {
        Ok(kept) => Some(kept),
        Err(panic) => {
            job::panicked(runtime, "init", &*panic);
            None
        }
    }
}

/// Runs `#[idle]` until it returns, panics, or leaves because the app is stopping.
///
/// # Safety
/// As for [`App::idle`].
unsafe fn idle<A: App>(runtime: &'static Runtime, me: CurrentWorker, kept: &mut A::Kept) {
    if !A::HAS_IDLE || runtime.is_stopping() {
        return;
    }
    // SAFETY: by this function's contract.
    let left = catch_unwind(AssertUnwindSafe(|| unsafe { A::idle(me, kept) }));
    forked::check(runtime);
    if let Err(panic) = left
        && !panic.is::<LeaveIdle>()
    {
        job::panicked(runtime, "idle", &*panic);
    }
}

/// Runs `#[shutdown]`, drops the resources, and collects the report.
///
/// # Safety
/// Every thread of the run but this one has ended; `filled` tells whether the resources are filled.
unsafe fn finish<A: App>(
    runtime: &'static Runtime,
    taken: &Taken,
    filled: bool,
    virtual_time: bool,
    settings: Settings,
) -> Report {
    let elapsed = StdDuration::from_nanos(runtime.elapsed());
    // Nobody comes in from outside any more, and waiting jobs' arguments are dropped before the hook runs.
    // SAFETY: by this function's contract.
    let (mut tasks, waiting) = unsafe { taken.end() };
    if filled {
        for (step, name) in [(A::shutdown as unsafe fn(), "shutdown"), (A::drop_resources, "a destructor")] {
            // SAFETY: by this function's contract, in this order.
            if let Err(panic) = catch_unwind(|| unsafe { step() }) {
                job::panicked(runtime, name, &*panic);
            }
            forked::check(runtime);
        }
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.level));
    Report {
        app: runtime.name.into(),
        virtual_time,
        outcome: runtime.outcome(),
        elapsed,
        settings,
        tasks,
        // Last, for the hook and destructors may spawn.
        dropped_jobs: waiting + runtime.dropped(),
    }
}
