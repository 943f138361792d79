//! `punctual rta`: reads a task set, analyzes it, and prints the result.

pub(crate) mod args;
mod page;
pub(crate) mod text;
pub(crate) mod trace;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use punctual_analysis::bound::{Analysis, NoBound};
use punctual_analysis::margin::{Margins, margins};
use punctual_analysis::system::System;
use punctual_analysis::{analyse, assign, explain, json, measured, schema};

use self::args::Rta;
use crate::app;
use crate::output::{print, say};

/// A deadline is missed, or the margin is too small, or a result could not be written.
const MISSED: u8 = 1;
/// The input is wrong, or a task has no bound because of it.
const BAD_INPUT: u8 = 2;

pub(crate) fn run(arguments: &Rta) -> ExitCode {
    match rta(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            say!("error: {message}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// The system to analyze, and the source of its tasks.
pub(crate) struct Input {
    pub(crate) system: System,
    /// File and line of a task.
    place: Box<dyn Fn(usize) -> String>,
}

/// Returns the exit code, or an error in the input.
fn rta(arguments: &Rta) -> Result<u8, String> {
    if let Some(path) = &arguments.html {
        punctual_files::check(path).map_err(|error| format!("--html {}: {error}", path.display()))?;
    }
    if arguments.profile.is_some() && arguments.model.is_none() && arguments.file.is_none() {
        return Err("--profile requires --model, or a task set to compare it with".into());
    }
    if let (Some(path), None) = (&arguments.trace, &arguments.model) {
        return trace::run(arguments, path);
    }
    let Input { mut system, place } = input(arguments)?;
    let recorded = arguments.trace.as_ref().map(|path| trace::add(&mut system, path)).transpose()?;
    system.scale(arguments.scale);
    if arguments.assign {
        return Ok(find_levels(&system));
    }
    let compared = arguments.file.as_ref().and(arguments.profile.as_ref());
    let compared = compared.map(|profile| compare(&mut system, profile)).transpose()?;
    let analysis = analyse(&system);
    let margins = margins(&system);
    let contradictions = match &compared {
        Some(compared) => compared.sentences(&system, &analysis),
        None => text::contradictions(&system, &analysis),
    };
    if arguments.json {
        print(&format!("{}\n", json::json(&system, &analysis, &margins)));
        compared.iter().flat_map(|_| &contradictions).for_each(|sentence| say!("{sentence}"));
    } else {
        print(&text::report(&system, &analysis, &margins, arguments.explain, contradictions));
    }
    for sentence in recorded.iter().flat_map(|recorded| recorded.contradictions(&system, &analysis)) {
        say!("{sentence}");
    }
    if let Some(path) = &arguments.html
        && let Err(error) = punctual_files::write(path, page::page(&system, &analysis, &margins).as_bytes())
    {
        say!("error: --html {}: {error}", path.display());
        return Ok(MISSED);
    }
    Ok(verdict(arguments, &system, &analysis, &margins, &place))
}

fn input(arguments: &Rta) -> Result<Input, String> {
    if let (Some(model), Some(profile)) = (&arguments.model, &arguments.profile) {
        return measured(model, profile, arguments.cpus, &arguments.without);
    }
    if !arguments.command.is_empty() {
        let files = app::run(&arguments.command, arguments.seconds, |_| {})?;
        let here = std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u64);
        return measured(&files.model, &files.profile, arguments.cpus.or(here), &arguments.without);
    }
    let path = arguments.file.as_ref();
    let path =
        path.ok_or("there is nothing to analyse; give a task set, --model and --profile, or -- and an app")?;
    let text = load(path)?;
    let file = path.display().to_string();
    let system = schema::read(&file, &text).map_err(|error| error.to_string())?;
    let place = move |at| match schema::line_of_task(&text, at) {
        Some(line) => format!("{file}:{line}"),
        None => file.clone(),
    };
    Ok(Input { system, place: Box::new(place) })
}

/// Compares a run with a task set.
fn compare(system: &mut System, profile: &Path) -> Result<measured::Comparison, String> {
    let text = load(profile)?;
    let source = measured::Source { file: &profile.display().to_string(), text: &text };
    measured::compare(system, source).map_err(|error| error.to_string())
}

fn load(path: &Path) -> Result<String, String> {
    fs::read_to_string(path)
        .map_err(|error| format!("{}: {error}; give a text file that can be read", path.display()))
}

/// Returns the declarations of an app, with the measurements of a run.
pub(crate) fn measured(
    model: &Path,
    profile: &Path,
    cpus: Option<u64>,
    without: &[String],
) -> Result<Input, String> {
    let (declared, measured) = (load(model)?, load(profile)?);
    let (model, profile) = (model.display().to_string(), profile.display().to_string());
    let declared = measured::Source { file: &model, text: &declared };
    let measured = measured::Source { file: &profile, text: &measured };
    let system = measured::read(declared, measured, cpus, without).map_err(|error| error.to_string())?;
    Ok(Input { system, place: Box::new(move |_| model.clone()) })
}

/// Returns the exit code, and prints its reason to standard error.
fn verdict(
    arguments: &Rta,
    system: &System,
    analysis: &Analysis,
    margins: &Margins,
    place: &dyn Fn(usize) -> String,
) -> u8 {
    let mut is_bad = false;
    for (at, outcome) in analysis.tasks.iter().enumerate() {
        let Err(reason) = outcome else { continue };
        let fix = match reason {
            NoBound::Overload { .. } => {
                "let them execute for less, release them less often, or move one to another CPU"
            }
            NoBound::Suspension { .. } => {
                "shorten the waiting or the execution, or release the task less often"
            }
            NoBound::NoArrivals => {
                "give it `min_interval` (and `burst`), or profile a run in which it is released"
            }
            // Another task causes it, or no analysis is known.
            _ => "",
        };
        is_bad |=
            matches!(reason, NoBound::Overload { .. } | NoBound::Suspension { .. } | NoBound::NoArrivals);
        say!("error: {}: {}", place(at), explain::why_none(system, at, reason));
        if !fix.is_empty() {
            say!("  fix: {fix}");
        }
    }
    if is_bad {
        return BAD_INPUT;
    }
    if !analysis.is_schedulable(system) || !text::contradictions(system, analysis).is_empty() {
        return MISSED;
    }
    match arguments.fail_under {
        Some(least) if margins.all.percent() < least => {
            say!(
                "error: --fail-under: every C may grow by {:.1} %, less than {least} %",
                margins.all.percent()
            );
            MISSED
        }
        _ => 0,
    }
}

fn find_levels(system: &System) -> u8 {
    let found = assign::assign(system);
    print(&text::assignment(system, &found));
    if found.is_schedulable { 0 } else { MISSED }
}
