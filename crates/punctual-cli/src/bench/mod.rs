//! `punctual bench`: validates the options, measures, and writes the results.

pub(crate) mod args;

use std::path::Path;

use punctual_bench::compare::{self, Comparison};
use punctual_bench::model::Run;
use punctual_bench::{BadOptions, Options, Silent, Stop, html, text};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::args::{Action, Bench};
use crate::display::Display;
use crate::output::{self, message, print};
use crate::status::{FINDING, GOOD, INTERRUPTED};

/// Returns the exit code, or an error in the command line.
pub(crate) fn run(arguments: &Bench) -> Result<u8, String> {
    if let Some(Action::Compare { old, new }) = &arguments.action {
        return show(old, new);
    }
    let old = match &arguments.compare {
        Some(path) => Some(compare::load(path).map_err(|error| format!("--compare: {error}"))?),
        None => None,
    };
    if arguments.html.is_some() && arguments.json.json == arguments.html {
        return Err("--html: the same file as --json".into());
    }
    arguments.json.check()?;
    output::check("--html", arguments.html.as_deref())?;
    let options = arguments.options()?;
    let stop = Stop::default();
    listen(&stop).map_err(|error| format!("cannot handle signals: {error}"))?;

    let unread = arguments.is_only_printed().then(|| stop.clone());
    let display = Display::new(unread, arguments.json.is_printed());
    let run = punctual_bench::run(&options, &stop, &display)
        .map_err(|error| format!("{}: {error}", flag_of(&error)))?;
    let comparison = match old {
        Some(old) => Some(compared(&old, &run, &options, &stop, &display)?),
        None => None,
    };
    if let Some(comparison) = &comparison {
        display.print(&text::comparison(comparison));
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
    Ok(if new.failures() > 0 { FINDING } else { GOOD })
}

/// Number of repeated measurements of an apparent regression: something else may have used the CPU,
/// or the other half of its core.
const REPETITIONS: usize = 2;

/// Compares the run with an earlier one. A regression counts only if it persists in further runs of
/// its suites.
fn compared(
    old: &Run,
    run: &Run,
    options: &Options,
    stop: &Stop,
    display: &Display,
) -> Result<Comparison, String> {
    let mut comparison = Comparison::new(old, run);
    for _ in 0..REPETITIONS {
        let suites = comparison.suites_with_slower_rows();
        if suites.is_empty() || stop.is_requested() {
            break;
        }
        let names: Vec<&str> = suites.iter().map(|suite| suite.as_str()).collect();
        display.print(&format!("Slower than before: {} is measured again", names.join(", ")));
        let again = punctual_bench::run(&Options { suites, ..options.clone() }, stop, &Silent)
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
        BadOptions::HourglassLength => "--duration",
        BadOptions::NoSuchLoad(_) => "--load",
        BadOptions::UnknownCpu { .. } => "--cpus",
        BadOptions::NoSuchStep { .. } => "--only",
        _ => "the options",
    }
}

/// Writes the results and prints the outcome.
fn finish(arguments: &Bench, run: &Run, comparison: Option<&Comparison>) -> u8 {
    let is_slower = comparison.is_some_and(|comparison| comparison.regressions() > 0);
    let failed = run.checks().filter(|check| check.verdict == punctual_bench::model::Verdict::Failed);
    let failed: Vec<&str> = failed.map(|check| check.id.as_str()).collect();
    let outcome = || {
        let mut text = String::new();
        if !failed.is_empty() {
            text += &format!("{} rules broken: {}\n", failed.len(), failed.join(", "));
        }
        let how = if run.interrupted { "stopped early" } else { "done" };
        text + &format!("{how} after {:.1} s\n", run.took_s)
    };
    let mut is_written = match run.to_json() {
        Ok(json) => arguments.json.write(outcome, || json),
        Err(error) => {
            message!("error: --json: {error}");
            false
        }
    };
    is_written &= output::write("--html", arguments.html.as_deref(), || html::page(run, comparison));
    // The run ended because standard output has no reader, not by Ctrl-C.
    let is_unread = arguments.is_only_printed() && output::is_over();
    match (run.interrupted && !is_unread, failed.is_empty() && !is_slower && is_written) {
        (true, _) => INTERRUPTED,
        (false, true) => GOOD,
        (false, false) => FINDING,
    }
}
