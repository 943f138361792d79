//! `punctual bench`: validates the options, measures, and writes the results.

pub(crate) mod args;

use std::path::Path;
use std::process::ExitCode;

use punctual_bench::compare::{self, Comparison};
use punctual_bench::model::Run;
use punctual_bench::{BadOptions, Options, Silent, Stop, html, text};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::args::{Action, Bench};
use crate::display::Display;
use crate::output::{self, print, say};

/// A rule was broken, a result could not be written, or there is a regression that counts as a
/// failure.
const FAILED: u8 = 1;
/// The command line is invalid.
const BAD_INPUT: u8 = 2;
/// The conventional exit status after Ctrl-C.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &Bench) -> ExitCode {
    match measure(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            say!("error: {message}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Returns the exit code, or an error in the command line.
fn measure(arguments: &Bench) -> Result<u8, String> {
    if let Some(Action::Compare { old, new }) = &arguments.action {
        return show(old, new);
    }
    let old = match &arguments.compare {
        Some(path) => Some(compare::load(path).map_err(|error| format!("--compare: {error}"))?),
        None => None,
    };
    if arguments.json.is_some() && arguments.json == arguments.html {
        return Err("--html: the same file as --json".into());
    }
    for (flag, path) in [("--json", &arguments.json), ("--html", &arguments.html)] {
        if let Some(path) = path {
            punctual_files::check(path).map_err(|error| format!("{flag} {}: {error}", path.display()))?;
        }
    }
    let stop = Stop::default();
    listen(&stop).map_err(|error| format!("cannot handle signals: {error}"))?;

    let display = Display::new(arguments.is_only_printed().then(|| stop.clone()));
    let run = punctual_bench::run(&arguments.options(), &stop, &display)
        .map_err(|error| format!("{}: {error}", flag_of(&error)))?;
    let comparison = match old {
        Some(old) => Some(compared(&old, &run, arguments, &stop)?),
        None => None,
    };
    if let Some(comparison) = &comparison {
        print(&format!("{}\n", text::comparison(comparison)));
    }
    Ok(finish(arguments, &run, comparison.as_ref()))
}

/// Shows a saved run and what differs from an earlier one.
fn show(old: &Path, new: &Path) -> Result<u8, String> {
    let load = |path| compare::load(path).map_err(|error| error.to_string());
    let (old, new) = (load(old)?, load(new)?);
    print(&format!("{}\n", text::head(&new)));
    for suite in &new.suites {
        print(&format!("{}\n", text::suite(suite, new.overhead.p50_ns)));
    }
    print(&format!("{}\n", text::comparison(&Comparison::new(&old, &new))));
    Ok(if new.failures() > 0 { FAILED } else { 0 })
}

/// Number of repeated measurements of an apparent regression: something else may have used the CPU,
/// or the other half of its core.
const REPETITIONS: usize = 2;

/// Compares the run with an earlier one. A regression counts only if it persists in further runs of
/// its suites.
fn compared(old: &Run, run: &Run, arguments: &Bench, stop: &Stop) -> Result<Comparison, String> {
    let mut comparison = Comparison::new(old, run);
    for _ in 0..REPETITIONS {
        let suites = comparison.suites_with_slower_rows();
        if suites.is_empty() || stop.is_requested() {
            break;
        }
        let names: Vec<&str> = suites.iter().map(|suite| suite.as_str()).collect();
        print(&format!("Slower than before: {} is measured again\n", names.join(", ")));
        let again = punctual_bench::run(&Options { suites, ..arguments.options() }, stop, &Silent)
            .map_err(|error| format!("{}: {error}", flag_of(&error)))?;
        comparison.confirm(&Comparison::new(old, &again));
    }
    Ok(comparison)
}

/// Makes a first signal request a stop and a second one end the program at once.
fn listen(stop: &Stop) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset here, and sets it there.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), stop.flag())?;
        signal_hook::flag::register(signal, stop.flag())?;
    }
    Ok(())
}

fn flag_of(error: &BadOptions) -> &'static str {
    match error {
        BadOptions::NoSamples | BadOptions::TooManySamples(_) => "--samples",
        BadOptions::HourglassLength => "--seconds",
        BadOptions::NoSuchLoad(_) => "--load",
        BadOptions::UnknownCpu { .. } => "--cpu",
        BadOptions::NoSuchStep(_) => "--only",
        _ => "the options",
    }
}

/// Writes the files and prints the outcome.
fn finish(arguments: &Bench, run: &Run, comparison: Option<&Comparison>) -> u8 {
    let mut code = if run.failures() > 0 { FAILED } else { 0 };
    let mut write = |flag: &str, path: &Path, text: Result<String, String>| {
        let written = text
            .and_then(|text| punctual_files::write(path, text.as_bytes()).map_err(|error| error.to_string()));
        match written {
            Ok(()) => print(&format!("written: {}\n", path.display())),
            Err(error) => {
                say!("error: {flag} {}: {error}", path.display());
                code = FAILED;
            }
        }
    };
    if let Some(path) = &arguments.json {
        write("--json", path, run.to_json().map_err(|error| error.to_string()));
    }
    if let Some(path) = &arguments.html {
        write("--html", path, Ok(html::page(run, comparison)));
    }
    if arguments.fail_on_regression && comparison.is_some_and(|comparison| comparison.regressions() > 0) {
        code = FAILED;
    }
    if run.failures() > 0 {
        let failed = run.checks().filter(|check| check.verdict == punctual_bench::model::Verdict::Failed);
        let ids: Vec<&str> = failed.map(|check| check.id.as_str()).collect();
        print(&format!("{} rules broken: {}\n", run.failures(), ids.join(", ")));
    }
    let how = if run.interrupted { "stopped early" } else { "done" };
    print(&format!("{how} after {:.1} s\n", run.took_s));
    // The run ended because standard output has no reader, not by Ctrl-C.
    let is_unread = arguments.is_only_printed() && output::is_over();
    if run.interrupted && !is_unread { INTERRUPTED } else { code }
}
