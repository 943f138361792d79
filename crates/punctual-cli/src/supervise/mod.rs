//! `punctual supervise`: runs an app and watches it from outside.

mod flight;

use std::ffi::OsString;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use punctual_isolate::cpus::Cpus;
use punctual_supervise::{Event, Restart, Settings};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::flight::Flight;
use crate::isolate::IsolatedCpus;
use crate::isolate::run::{code_of, resolve};
use crate::output::message;
use crate::parse::time;
use crate::trace::child::MARKS;

/// Run an app and watch it from another process and another CPU, at a higher priority
///
/// A job that uses more CPU time than the `budget` of its task is caught, also in an endless loop
/// at real-time priority: its stack is written to a file, and the app continues, is asked to stop,
/// or is killed, as the task's `on_budget` specifies. A job that is displaced by other threads, or
/// waits, for longer than that is reported. A crash is reported with its stack, too. Stacks are
/// written to the current directory. Exits as the app does at its last end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo punctual supervise -- ./my-app           as the tasks declare
  sudo punctual supervise --restart on-failure -- ./my-app
      restarts it, five times in a row
  sudo punctual supervise --newest -- ./my-app  a kernel trace of each stack
  sudo punctual supervise --cpus 3 -- ./my-app  on an isolated CPU")]
pub(crate) struct Supervise {
    /// When to start the app again
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Never)]
    restart: When,

    /// Number of restarts in a row
    #[arg(long, value_name = "N", default_value_t = 5)]
    attempts: u32,

    /// Time before it is started again, twice as long before the next time
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    pause: Duration,

    /// Time to end for an app that is asked to, before it is killed
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = time)]
    grace: Duration,

    /// Time until an app that was stopped by a signal is killed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    stopped: Duration,

    /// Keep the newest events of the kernel's tracer, and write them next to each stack; costs some
    /// 100 ns to 2 µs per switch and job, and needs root
    #[arg(long)]
    newest: bool,

    /// CPUs to take for the app, like `punctual isolate run`
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked)]
    cpus: Option<Cpus>,

    /// Punctual app
    #[arg(last = true, required = true, value_name = "APP")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    /// Never
    Never,
    /// If it has failed
    OnFailure,
    /// After any end
    Always,
}

pub(crate) fn run(arguments: &Supervise) -> Result<u8, String> {
    resolve(&arguments.command[0])?;
    let stop = catch_signals().map_err(|error| format!("cannot handle signals: {error}"))?;
    let taken = arguments.cpus.as_ref().map(|cpus| IsolatedCpus::take(cpus, arguments.newest)).transpose()?;
    let mut settings = Settings::default();
    settings.restart = match arguments.restart {
        When::Never => Restart::Never,
        When::OnFailure => Restart::OnFailure,
        When::Always => Restart::Always,
    };
    settings.attempts = arguments.attempts;
    settings.pause = arguments.pause;
    settings.grace = arguments.grace;
    settings.stopped = arguments.stopped;
    settings.cpus = arguments.cpus.as_ref().map(|cpus| cpus.iter().collect());
    let housekeeping = taken.as_ref().map_or(Vec::new(), IsolatedCpus::others);
    let flight = arguments.newest.then(|| Flight::new(&settings.snapshots, housekeeping)).transpose();
    let flight = flight.map_err(|error| format!("cannot start a thread: {error}"))?;
    let make = || {
        let mut command = Command::new(&arguments.command[0]);
        command.args(&arguments.command[1..]);
        if let Some(taken) = &taken {
            taken.enter(&mut command)?;
        }
        if let Some(flight) = &flight {
            flight.begin();
            command.env(MARKS, "1");
        }
        Ok(command)
    };
    let mut on_event = |event: Event| {
        message!("supervise: {event}");
        if let (
            Some(flight),
            Event::OverBudget { snapshot: Some(file), .. } | Event::Crash { snapshot: Some(file), .. },
        ) = (&flight, &event)
        {
            flight.keep(file);
        }
    };
    let ended = punctual_supervise::supervise(&make, &settings, &stop, &mut on_event);
    drop(flight);
    let given_back = taken.map_or(Ok(0), IsolatedCpus::give_back);
    let code = code_of(ended.map_err(|error| error.to_string())?);
    Ok(code.max(given_back?))
}

/// Records the signals that end this program: the app is then asked to stop.
fn catch_signals() -> std::io::Result<Arc<AtomicI32>> {
    let come = Arc::new(AtomicI32::new(0));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let come = Arc::clone(&come);
        // SAFETY: the handler stores to an atomic, which is async-signal-safe.
        unsafe { signal_hook::low_level::register(signal, move || come.store(signal, Ordering::Relaxed)) }?;
    }
    Ok(come)
}
