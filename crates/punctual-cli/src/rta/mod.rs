//! `punctual rta`: reads a task set, analyzes it, and prints the result.

pub(crate) mod args;
mod page;
pub(crate) mod text;
pub(crate) mod trace;

use std::path::Path;
use std::time::Duration;

use punctual_analysis::bound::{Analysis, NoBound};
use punctual_analysis::margin::{Margins, margins};
use punctual_analysis::system::System;
use punctual_analysis::{analyze, assign, explain, json, measured, of_run, schema, work};

use self::args::Rta;
use crate::app;
use crate::output::{self, message, print};
use crate::parse::Deadline;
use crate::status::{BAD_INPUT, FINDING};

/// Default length of the app's run.
const DURATION: Duration = Duration::from_secs(5);

/// The system to analyze, and the source of its tasks.
pub(crate) struct Input {
    pub(crate) system: System,
    /// File and line of a task.
    place: Box<dyn Fn(usize) -> String>,
}

/// Returns the exit code, or an error in the input.
pub(crate) fn run(arguments: &Rta) -> Result<u8, String> {
    arguments.json.check()?;
    output::check("--html", arguments.html.as_deref())?;
    let file = arguments.file.as_deref().map(File::load).transpose()?;
    check(arguments, file.as_ref())?;
    if let (Some(path), None) = (&arguments.trace, &file) {
        return trace::run(arguments, path);
    }
    let Input { mut system, place } = input(arguments, file.as_ref())?;
    let recorded =
        arguments.trace.as_ref().map(|path| trace::add(&mut system, path, arguments.futex)).transpose()?;
    system.scale(arguments.scale);
    if arguments.assign {
        return find_levels(&system);
    }
    let compared = arguments.profile.as_ref().filter(|_| file.is_some_and(|file| !file.is_model));
    let compared = compared.map(|profile| compare(&mut system, profile)).transpose()?;
    let (analysis, contradicted, margins, differences) = limited(|| {
        let analysis = analyze(&system);
        let contradicted = text::contradictions(&system, &of_run(&system, &analysis));
        let margins = margins(&system);
        let differences = compared.as_ref().map(|compared| compared.sentences(&system, &analysis));
        (analysis, contradicted, margins, differences)
    })?;
    let is_contradicted = !contradicted.is_empty();
    let contradictions = differences.unwrap_or(contradicted);
    if arguments.json.is_printed() {
        compared.iter().flat_map(|_| &contradictions).for_each(|sentence| message!("{sentence}"));
    }
    let mut is_written = arguments.json.write(
        || text::report(&system, &analysis, &margins, contradictions),
        || json::json(&system, &analysis, &margins),
    );
    for sentence in recorded.iter().flat_map(|recorded| recorded.contradictions(&system, &analysis)) {
        message!("{sentence}");
    }
    is_written &=
        output::write("--html", arguments.html.as_deref(), || page::page(&system, &analysis, &margins));
    match verdict(arguments, &system, &analysis, is_contradicted, &margins, &place) {
        0 if !is_written => Ok(FINDING),
        code => Ok(code),
    }
}

/// A task set, or the model of an app.
struct File {
    name: String,
    text: String,
    is_model: bool,
}

impl File {
    fn load(path: &Path) -> Result<Self, String> {
        let text = load(path)?;
        Ok(Self { name: path.display().to_string(), is_model: measured::is_model(&text), text })
    }
}

/// Checks that the options belong to this kind of input.
fn check(arguments: &Rta, file: Option<&File>) -> Result<(), String> {
    Deadline::check(&arguments.deadlines)?;
    if arguments.duration.is_some() && arguments.command.is_empty() {
        return Err("--duration: no app is run; give `--` and an app, or omit the option".into());
    }
    match file {
        None if arguments.profile.is_some() => {
            Err("--profile requires the model of the app, or a task set to compare it with".into())
        }
        None if arguments.trace.is_some() && arguments.cpus.is_some() => {
            Err("--cpus: a recording contains the CPUs of every thread; omit the option".into())
        }
        None if arguments.trace.is_some() && !arguments.without.is_empty() => {
            Err("--without: a recording contains no tasks; give the model of the app and --profile, too"
                .into())
        }
        None => Ok(()),
        Some(model) if model.is_model => match &arguments.profile {
            Some(_) => Ok(()),
            None => Err(format!(
                "{} is the model of an app, which has no execution times; give those of a run with --profile",
                model.name
            )),
        },
        Some(set) if arguments.trace.is_some() => {
            Err(format!("--trace: {} is a task set; give the model of an app", set.name))
        }
        Some(set) if arguments.cpus.is_some() => {
            Err(format!("--cpus: {} is a task set; give `cpus` of its global partition there", set.name))
        }
        Some(set) if !arguments.without.is_empty() => {
            Err(format!("--without: {} is a task set; remove the task there", set.name))
        }
        Some(_) => Ok(()),
    }
}

fn input(arguments: &Rta, file: Option<&File>) -> Result<Input, String> {
    let cpus = arguments.cpus.as_ref().map(|cpus| cpus.len() as u64);
    if !arguments.command.is_empty() {
        let files = app::run(&arguments.command, arguments.duration.unwrap_or(DURATION), |_| {})?;
        let here = std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u64);
        return measured(&files.model, &files.profile, cpus.or(here), &arguments.without);
    }
    let file =
        file.ok_or("there is nothing to analyze; give a task set, a model and --profile, or -- and an app")?;
    if let (true, Some(path), Some(profile)) = (file.is_model, &arguments.file, &arguments.profile) {
        return measured(path, profile, cpus, &arguments.without);
    }
    let system = schema::read(&file.name, &file.text).map_err(|error| error.to_string())?;
    let (name, text) = (file.name.clone(), file.text.clone());
    let place = move |at| match schema::line_of_task(&text, at) {
        Some(line) => format!("{name}:{line}"),
        None => name.clone(),
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
    punctual_files::read_text(path)
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
    is_contradicted: bool,
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
        message!("error: {}: {}", place(at), explain::why_none(system, at, reason));
        if !fix.is_empty() {
            message!("  fix: {fix}");
        }
    }
    if is_bad {
        return BAD_INPUT;
    }
    if !analysis.is_schedulable(system) || is_contradicted {
        return FINDING;
    }
    match arguments.fail_under {
        Some(least) if margins.all.percent() < least => {
            message!(
                "error: --fail-under: every C may grow by {:.1} %, less than {least} %",
                margins.all.percent()
            );
            FINDING
        }
        _ => 0,
    }
}

fn find_levels(system: &System) -> Result<u8, String> {
    let found = limited(|| assign::assign(system))?;
    print(&text::assignment(system, &found));
    Ok(if found.is_schedulable { 0 } else { FINDING })
}

/// Runs the whole analysis of the command with one limit on its work.
pub(crate) fn limited<T>(analysis: impl FnOnce() -> T) -> Result<T, String> {
    work::limited(work::MAX_WORK, analysis).map_err(|error| error.to_string())
}
