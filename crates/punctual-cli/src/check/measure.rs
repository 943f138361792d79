//! Gets the times of tasks from an app, a program, a recording, or a probe.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clap::Parser;
use punctual_analysis::bound::{Analysis, Interferer};
use punctual_analysis::explain;
use punctual_analysis::system::System;
use punctual_analysis::time::{Nanos, Ratio};
use punctual_analysis::{analyze, of_run};
use punctual_bench::{Probe, Stop};
use punctual_isolate::doctor::App;
use punctual_isolate::facts::Machine;
use punctual_isolate::tree::Tree;
use punctual_report::format::{format_counted, format_part};
use serde::Deserialize;

use super::args::Check;
use super::verdict::{Cause, Kind, RESPONSE_TIMES, Subject, Task, Unknown};
use crate::app::{self, MODEL};
use crate::args::Punctual;
use crate::doctor;
use crate::parse::Deadline;
use crate::rta::args::Jobs;
use crate::rta::text::contradictions;
use crate::rta::trace::infer::{self, Assumptions};
use crate::rta::trace::observe::Whose;
use crate::rta::trace::read;
use crate::trace::args::Futex;
use crate::trace::record;

/// The measurements, and their machine, if known.
pub(super) struct Measured {
    pub(super) subject: Subject,
    pub(super) machine: Option<Machine>,
    /// The app or program, while it ran.
    pub(super) app: Option<App>,
}

pub(super) fn measure(arguments: &Check) -> Result<Measured, String> {
    let mut measured = measure_subject(arguments)?;
    let Subject { tasks, unknown, invalid, .. } = &mut measured.subject;
    let named = arguments.deadlines.iter().filter_map(|deadline| deadline.task.as_deref());
    for name in named.filter(|name| !tasks.iter().any(|task| names(&task.name).contains(name))) {
        let known: Vec<&str> = tasks.iter().map(|task| &*task.name).collect();
        let why = format!("--deadline: no task has this name; there are {}", known.join(", "));
        invalid.get_or_insert_with(|| {
            format!("--deadline names no task `{name}`; there are {}", known.join(", "))
        });
        unknown.insert(0, Unknown::new(format!("the deadline of `{name}`"), why));
    }
    Ok(measured)
}

/// Returns the names of a task: that of tables, and the name and the number of a recorded thread.
fn names(name: &str) -> [&str; 3] {
    let (short, number) = name.rsplit_once('/').unwrap_or((name, name));
    [name, short, number]
}

fn measure_subject(arguments: &Check) -> Result<Measured, String> {
    let saved = arguments.machine.as_deref().map(doctor::saved).transpose()?.map(Machine::read);
    if let Some(path) = &arguments.trace {
        let mut subject = Subject::new(Kind::Recording, path.display().to_string());
        infer_tasks(arguments, path, None, &mut subject)?;
        if saved.is_none() {
            subject.unknown.push(Unknown::new(
                "the settings of the machine",
                "a recording does not contain them; save them there with `punctual doctor --record m.txt`, and \
                 give `--machine m.txt`",
            ));
        }
        return Ok(Measured { subject, machine: saved, app: None });
    }
    if let Some(machine) = saved {
        let mut subject = Subject::new(Kind::Machine, "a periodic task".into());
        subject.tasks.push(declared_probe(arguments));
        let how = "run punctual check on that machine, or record it there and give --trace FILE";
        subject.unknown.push(Unknown::new(RESPONSE_TIMES, how));
        return Ok(Measured { subject, machine: Some(machine), app: None });
    }
    let Some(name) = arguments.command.first() else { return probe(arguments) };
    let place = crate::isolate::run::resolve(name)?;
    if is_app(&place) { measure_app(arguments) } else { measure_program(arguments) }
}

impl Subject {
    fn new(kind: Kind, name: String) -> Self {
        let (tasks, causes, unknown) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, name, length: None, tasks, causes, unknown, invalid: None }
    }
}

/// The part of a program that is searched, in bytes.
const PROGRAM_LIMIT: u64 = 256 << 20;

/// Returns whether this is an app of Punctual, without running it: its runtime reads the variable
/// that asks for the model.
fn is_app(program: &Path) -> bool {
    // Variables are in the read-only data, before the debug information.
    let mut bytes = Vec::new();
    let _ = File::open(program).and_then(|file| file.take(PROGRAM_LIMIT).read_to_end(&mut bytes));
    bytes.windows(MODEL.len()).any(|window| window == MODEL.as_bytes())
}

fn declared_probe(arguments: &Check) -> Task {
    let (period, deadline) = (arguments.period, Deadline::of_all(&arguments.deadlines));
    let name = "probe".into();
    Task { name, period: Some(period), deadline: deadline.or(Some(period)), ..Task::default() }
}

/// Measures a periodic task without work on the CPU that the doctor examines.
fn probe(arguments: &Check) -> Result<Measured, String> {
    let machine = Machine::read(Tree::system());
    let cpu = doctor::scene(&machine)?.cpus.iter().next().unwrap_or(0);
    let (period, length) = (Duration::from_nanos(arguments.period), arguments.duration);
    let found: Probe = punctual_bench::probe(period, length, cpu, &Stop::default())
        .map_err(|error| format!("the probe was not measured: {error}"))?;
    let mut subject = Subject::new(Kind::Probe, format!("a periodic task on CPU {cpu}"));
    let declared = declared_probe(arguments);
    subject.tasks.push(Task {
        jobs: Some(found.lateness_ns.len() as u64),
        misses: declared.deadline.map(|deadline| found.misses(deadline)),
        seen: found.worst_ns(),
        ..declared
    });
    subject.length = Some(length.as_nanos() as u64);
    subject.invalid =
        found.refused.first().map(|refused| format!("the probe ran without a setting: {refused}"));
    subject
        .unknown
        .push(Unknown::new("lateness under load", "punctual bench latency measures it idle and loaded"));
    subject
        .unknown
        .push(Unknown::new("the bound of the probe", "a measurement does not prove the worst case"));
    Ok(Measured { subject, machine: Some(machine), app: None })
}

/// The declarations of an app that the comparison shows.
#[derive(Deserialize)]
struct Model {
    tasks: Vec<Declared>,
}

#[derive(Deserialize)]
struct Declared {
    name: String,
    period_ns: Option<Nanos>,
    min_interval_ns: Option<Nanos>,
    deadline_ns: Option<Nanos>,
}

/// The measurements of an app that the comparison shows.
#[derive(Deserialize)]
struct Profile {
    duration_ns: Option<Nanos>,
    tasks: Vec<Profiled>,
}

#[derive(Deserialize)]
struct Profiled {
    name: String,
    jobs: Option<u64>,
    response_max_ns: Option<Nanos>,
    deadline_misses: Option<u64>,
}

fn load<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, String> {
    let text = punctual_files::read_text(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Runs an app of Punctual, which declares and measures its tasks.
fn measure_app(arguments: &Check) -> Result<Measured, String> {
    let command = &arguments.command;
    let mut running = None;
    let files = app::run(command, arguments.duration, |process| {
        running = Some((Machine::read(Tree::system()), process));
    })?;
    let (machine, process) = running.ok_or("the app did not run")?;
    let app = app::observed(app::declared(&files.model, command)?, process);
    let model: Model = load(&files.model).map_err(|error| format!("the model: {error}"))?;
    let profile: Profile = load(&files.profile).map_err(|error| format!("the profile: {error}"))?;
    let mut subject = Subject::new(Kind::App, file_name(&command[0]));
    subject.length = profile.duration_ns;
    subject.tasks = model.tasks.iter().map(|declared| of_app(arguments, declared, &profile)).collect();
    let idle = |task: &&Task| task.jobs.unwrap_or(0) == 0;
    let without: Vec<String> = subject.tasks.iter().filter(idle).map(|task| task.name.clone()).collect();
    if !without.is_empty() {
        subject.unknown.push(Unknown::new(
            format!("times of {}", quoted(&without)),
            "no job ran; extend --duration, or give the app the options and the input that release a task",
        ));
    }
    let cpus = std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u64);
    match crate::rta::measured(&files.model, &files.profile, cpus, &without) {
        Ok(input) => prove(arguments, input.system, &mut subject),
        Err(error) => subject.unknown.push(Unknown::new("bounds", error)),
    }
    Ok(Measured { subject, machine: Some(machine), app: Some(app) })
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn of_app(arguments: &Check, declared: &Declared, profile: &Profile) -> Task {
    let given = arguments.deadline_of(&declared.name);
    let measured = profile.tasks.iter().find(|task| task.name == declared.name);
    let jobs = measured.and_then(|measured| measured.jobs);
    // Without a job nothing was measured.
    let measured = measured.filter(|_| jobs != Some(0));
    Task {
        name: declared.name.clone(),
        period: declared.period_ns.or(declared.min_interval_ns),
        deadline: given.or(declared.deadline_ns),
        jobs,
        // The app counted against its own deadline.
        misses: measured.and_then(|measured| measured.deadline_misses).filter(|_| given.is_none()),
        seen: measured.and_then(|measured| measured.response_max_ns),
        ..Task::default()
    }
}

/// Adds the bounds of an app, and jobs that exceed them.
fn prove(arguments: &Check, mut system: System, subject: &mut Subject) {
    for task in &mut system.tasks {
        task.deadline = arguments.deadline_of(&task.name).or(task.deadline);
    }
    let analysis = analyze(&system);
    add_bounds(&system, &analysis, subject);
    let of_run = of_run(&system, &analysis);
    for (task, &bound) in system.tasks.iter().zip(&of_run).filter(|_| system.of_profiled_run().is_some()) {
        let shown = subject.tasks.iter_mut().find(|shown| shown.name == task.name);
        shown.into_iter().for_each(|shown| shown.profiled_bound = bound);
    }
    for sentence in contradictions(&system, &of_run) {
        subject.invalid.get_or_insert_with(|| "a job took longer than its bound".into());
        subject.unknown.push(Unknown::new("a cause of delay", sentence));
    }
    subject.unknown.extend(system.assumptions.iter().map(|it| Unknown::new("assumed", it.clone())));
    let command: Vec<_> = arguments.command.iter().map(|word| word.display().to_string()).collect();
    subject.causes.extend(exceeding(&system, &analysis, &command.join(" ")));
}

fn add_bounds(system: &System, analysis: &Analysis, subject: &mut Subject) {
    for (at, (task, outcome)) in system.tasks.iter().zip(&analysis.tasks).enumerate() {
        let Some(shown) = subject.tasks.iter_mut().find(|shown| shown.name == task.name) else { continue };
        match outcome {
            Ok(bound) => shown.bound = Some(bound.response),
            Err(why) => {
                let why = explain::why_none(system, at, why);
                subject.unknown.push(Unknown::bound(&task.name, &why));
            }
        }
    }
}

/// Returns the largest term of the bound that exceeds its deadline most, if any does.
fn exceeding(system: &System, analysis: &Analysis, command: &str) -> Option<Cause> {
    let at = explain::tightest(system, analysis)?;
    let (task, bound) = (&system.tasks[at], analysis.tasks[at].as_ref().ok()?);
    if bound.meets(task.deadline) {
        return None;
    }
    let source = |who: Interferer| match who {
        Interferer::Higher(at) | Interferer::Peer(at) => format!("jobs of `{}`", system.tasks[at].name),
        Interferer::Interrupt(at) => format!("`{}`", system.interrupts[at].name),
        Interferer::Release(at) => format!("releases of `{}`", system.tasks[at].name),
    };
    let terms = bound.interference.iter().map(|term| (term.work.time(), source(term.who)));
    let blocking = bound.blocking.map(|blocking| {
        let by = blocking.by.map_or("idle", |by| system.tasks[by].name.as_str());
        (blocking.time, format!("a section of `{by}`"))
    });
    let others = [
        (bound.own.time(), "its own execution".to_owned()),
        (bound.not_supplied, "time without a CPU".to_owned()),
    ];
    let (time, largest) = terms.chain(blocking).chain(others).max_by_key(|term| term.0)?;
    // No choice of levels removes a late release.
    let (time, largest, command, lasts) = if bound.jitter > time {
        let command = format!("punctual trace record -- {command}");
        (bound.jitter, "the late start of its jobs".into(), command, "shows which threads had the CPU")
    } else {
        let command = format!("punctual rta --assign -- {command}");
        (time, largest, command, "finds levels that meet every deadline")
    };
    let what = format!("of the bound of `{}`, {} are {largest}", task.name, format_part(time));
    let (command, lasts) = (Some(command), Some(lasts));
    Some(Cause { source: "rta", what, cost: None, command, is_command: true, lasts })
}

/// Records a program, which neither declares nor measures its tasks.
fn measure_program(arguments: &Check) -> Result<Measured, String> {
    let mut subject = Subject::new(Kind::Program, file_name(&arguments.command[0]));
    subject.length = Some(arguments.duration.as_nanos() as u64);
    let no_files = |error| format!("cannot create a directory for the recording: {error}");
    let files = app::files().map_err(no_files)?;
    let mut running = None;
    let mut read = |process| running = Some((Machine::read(Tree::system()), process));
    let recorder = ["punctual", "trace", "record"];
    let recorder = match Punctual::parse_from(recorder).command {
        crate::args::Command::Trace(crate::trace::args::Trace {
            command: crate::trace::args::Command::Record(mut record),
        }) => {
            record.output.clone_from(&files.trace);
            record.source.duration = Some(arguments.duration);
            record.source.command.clone_from(&arguments.command);
            record
        }
        _ => unreachable!("the words above are `trace record`"),
    };
    let recorded = record::record(&recorder, Stdio::from(io::stderr()), Some(&mut read));
    match (recorded, running) {
        (Ok(_), Some((machine, process))) => {
            if let Err(why) = infer_tasks(arguments, &files.trace, Some(process), &mut subject) {
                subject.unknown.push(Unknown::new(RESPONSE_TIMES, why));
            }
            Ok(Measured { app: Some(program(&subject.name, process)), subject, machine: Some(machine) })
        }
        // The recorder did not start the program. The machine can still be examined.
        (Err(refused), None) => {
            let mut program_run = app::App::start(&arguments.command, &[], Stdio::inherit())?;
            program_run.settle();
            let (machine, process) = (Machine::read(Tree::system()), program_run.id());
            drop(program_run);
            subject.unknown.push(Unknown::new(RESPONSE_TIMES, refused.message));
            Ok(Measured { app: Some(program(&subject.name, process)), subject, machine: Some(machine) })
        }
        (Err(failed), Some(_)) => Err(failed.message),
        (Ok(_), None) => Err(format!("{} did not run", subject.name)),
    }
}

/// Describes a program of whose threads only the observed ones are known.
fn program(name: &str, process: u32) -> App {
    app::observed(App::program(name), process)
}

fn file_name(command: &OsStr) -> String {
    Path::new(command).file_name().unwrap_or(command).display().to_string()
}

/// Infers tasks from a recording: those of a process, or all.
fn infer_tasks(
    arguments: &Check,
    path: &Path,
    process: Option<u32>,
    subject: &mut Subject,
) -> Result<(), String> {
    let recording = read::read(path, false, Futex::Auto)?;
    let names = recording.names.at(u64::MAX);
    subject.length = Some(recording.length);
    let assumptions = Assumptions { jobs: Jobs::Auto, deadlines: &[], pwcet: None, scale: Ratio::ONE };
    let result = infer::infer(&assumptions, recording, &subject.name)?;
    let is_shown = |owner: &Whose| match (process, owner) {
        (Some(process), Whose::Thread(thread, _)) => {
            *thread == process || names.process_of(*thread) == Some(process)
        }
        _ => true,
    };
    let threads = result.threads.iter().zip(&result.owners).zip(&result.flawed);
    let shown = threads.filter(|((_, owner), _)| is_shown(owner));
    for ((thread, _), &flawed) in shown.filter(|((thread, _), flawed)| thread.seen().jobs + **flawed > 0) {
        let seen = thread.seen();
        if flawed > 0 {
            subject.unknown.push(Unknown::new(
                format!("times of {} of `{}`", format_counted(flawed, "job"), thread.name),
                "events around them are missing; record again, with a larger buffer if events were lost: punctual \
                 trace record --buffer 65536",
            ));
        }
        subject.tasks.push(Task {
            name: thread.name.clone(),
            period: seen.periodic().map(|model| model.period),
            deadline: deadline_of_thread(arguments, &thread.name, process.is_some()),
            jobs: Some(seen.jobs),
            misses: None,
            seen: seen.slowest.and_then(|job| job.response()),
            unmeasured: flawed,
            ..Task::default()
        });
    }
    if subject.tasks.is_empty() {
        return Err(
            "no real-time thread had a job; record for longer, or give the thread a real-time policy".into(),
        );
    }
    add_bounds(&result.inferred.system, &result.analysis, subject);
    for (at, why) in &result.inferred.unbounded {
        let name = &result.threads[*at].name;
        if subject.tasks.iter().any(|task| task.name == *name) {
            subject.unknown.push(Unknown::bound(name, why));
        }
    }
    for sentence in infer::contradictions(&result) {
        subject.invalid.get_or_insert_with(|| "a job took longer than its bound".into());
        subject.unknown.push(Unknown::new("a cause of delay", sentence));
    }
    let assumptions = &result.inferred.system.assumptions;
    subject.unknown.extend(assumptions.iter().map(|it| Unknown::new("assumed", it.clone())));
    if subject.tasks.iter().all(|task| task.deadline.is_none()) {
        subject
            .unknown
            .push(Unknown::new("deadlines", "a recording contains none; give `--deadline NAME=TIME`"));
    }
    Ok(())
}

/// Returns the deadline of a recorded thread, by its name, its number, or both as in tables. One
/// for all applies to the threads of the program only.
fn deadline_of_thread(arguments: &Check, name: &str, is_of_program: bool) -> Option<Nanos> {
    let is_called = |task: &str| names(name).contains(&task);
    match is_of_program {
        true => Deadline::find(&arguments.deadlines, is_called),
        false => Deadline::named(&arguments.deadlines, is_called),
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::schema;

    use super::*;

    /// Returns the cause and the remedy for a task of `terms` below another, both due after 400 µs.
    fn cause(terms: &str) -> Option<(String, String)> {
        let file = format!(
            r#"
            schema = "punctual-taskset/1"
            [[task]]
            name = "a"
            level = 2
            period = "1ms"
            execution = "100us"
            deadline = "400us"
            [[task]]
            name = "b"
            level = 1
            period = "2ms"
            deadline = "400us"
            {terms}
            "#
        );
        let system = schema::read("tasks.toml", &file).unwrap();
        let cause = exceeding(&system, &analyze(&system), "./app")?;
        Some((cause.what, cause.command.unwrap()))
    }

    #[test]
    fn largest_term_of_bound_selects_remedy() {
        assert_eq!(cause("execution = '200us'\njitter = '50us'"), None);
        for (terms, what, remedy) in [
            ("execution = '400us'", "400 µs are its own execution", "punctual rta --assign -- ./app"),
            (
                "execution = '50us'\njitter = '300us'",
                "300 µs are the late start",
                "punctual trace record -- ./app",
            ),
        ] {
            let (found, command) = cause(terms).expect("the bound exceeds the deadline");
            assert!(found.contains(what) && command == remedy, "{found}: {command}");
        }
    }
}
