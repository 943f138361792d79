//! Runs apps by many scripts, each run in a separate process, and reports violations.

mod case;
mod process;

use std::process::ExitCode;
use std::time::Instant;

use crate::app::App;
use clap::{Parser, ValueEnum};

use crate::child::{self, Time};
use crate::script::Script;

use case::{Case, Ended, Verdict};

/// Number of attempts with a smaller script before it counts as harmless, and the time limit for
/// all of them.
const TRIES: usize = 4;
const SHRINKING: std::time::Duration = std::time::Duration::from_secs(30);
/// Number of repetitions of a run on a busy machine, with a high priority if permitted.
const MAX_REPETITIONS: usize = 3;

/// Main function of the generated program.
pub fn main(apps: &'static [&'static App]) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match &*words {
        [child, app, time, books, script] if child == case::CHILD => {
            match (find(apps, app), Time::from_str(time, false), books.parse(), script.parse()) {
                (Ok(app), Ok(time), Ok(books), Ok(script)) => child::live(app, time, script, books),
                _ => Err("these are the words of the runner for its children".to_owned()),
            }
        }
        _ => run(apps, &Options::parse()),
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn find(apps: &[&'static App], name: &str) -> Result<&'static App, String> {
    let found = apps.iter().find(|app| app.name == name);
    found.copied().ok_or_else(|| format!("there is no app `{name}`"))
}

/// Numbers of runs by result.
#[derive(Debug, Default)]
struct Sum {
    runs: u64,
    skipped: u64,
    jobs: u64,
    panics: u64,
    hooks: u64,
    repeated: u64,
    unclear: u64,
}

/// Runs every app by the requested scripts; returns the number of failed runs.
fn run(apps: &[&'static App], options: &Options) -> Result<usize, String> {
    let begun = Instant::now();
    let chosen: Vec<&'static App> = match &options.app {
        Some(name) => vec![find(apps, name)?],
        None => apps.to_vec(),
    };
    let (mut sum, mut failed) = (Sum::default(), 0);
    let mut number = 0;
    while number < options.scripts
        && options.seconds.is_none_or(|seconds| number == 0 || begun.elapsed().as_secs() < seconds)
    {
        for &app in &chosen {
            let chance = || Script::of(options.seed, app.seed, number);
            let script = options.script.clone().unwrap_or_else(chance);
            for case in cases(app, &script, options) {
                failed += usize::from(!holds(&case, options, &mut sum)?);
                if failed >= options.failures {
                    return Ok(failed);
                }
            }
        }
        number += 1;
    }
    let Sum { runs, skipped, jobs, panics, hooks, repeated, unclear } = sum;
    println!(
        "{} apps, {runs} processes in {:.1} s: {jobs} jobs, {panics} panics and {hooks} hooks in their last runs; {skipped} \
         skipped, {repeated} repeated, {unclear} unclear, {failed} failed",
        chosen.len(),
        begun.elapsed().as_secs_f64()
    );
    Ok(failed)
}

/// Returns one script in both kinds of time, and as both users.
fn cases(app: &'static App, script: &Script, options: &Options) -> Vec<Case> {
    let case = |time, privileged| Case { app, time, privileged, script: script.clone() };
    let all = [case(Time::Virtual, true), case(Time::Real, true), case(Time::Real, false)];
    let wanted = |case: &Case| {
        options.time.is_none_or(|time| time == case.time)
            && options.privileged.is_none_or(|privileged| privileged == case.privileged)
            && (case.privileged || process::is_root())
    };
    all.into_iter().filter(wanted).collect()
}

/// Returns true if a run has no violation; otherwise prints the violations and the command that
/// repeats the run.
fn holds(case: &Case, options: &Options, sum: &mut Sum) -> Result<bool, String> {
    let mut ended = case.run(false)?;
    for _ in 0..MAX_REPETITIONS {
        if !matches!(ended.verdict, Verdict::Late(_)) {
            break;
        }
        sum.repeated += 1;
        ended = case.run(true)?;
    }
    sum.runs += 1;
    sum.jobs += ended.jobs;
    sum.panics += ended.panics;
    sum.hooks += ended.hooks;
    match ended.verdict {
        Verdict::Holds => return Ok(true),
        Verdict::Skipped => {
            sum.skipped += 1;
            return Ok(true);
        }
        Verdict::Late(lines) => {
            // On a busy machine a late end proves nothing.
            sum.unclear += 1;
            println!("unclear, since the machine is too busy: {case}\n  {}", lines.join("; "));
            return Ok(true);
        }
        Verdict::Fails(_) => {}
    }
    let (case, ended) = if options.as_it_is { (case.clone(), ended) } else { shrink(case.clone(), ended)? };
    println!("FAILED: {case}");
    for line in ended.verdict.lines() {
        println!("  {line}");
    }
    for line in ended.last_words() {
        println!("  | {line}");
    }
    println!("  again: {}", case.command());
    Ok(false)
}

/// Shrinks a failing script as long as it still fails.
fn shrink(mut case: Case, mut ended: Ended) -> Result<(Case, Ended), String> {
    let begun = Instant::now();
    'smaller: loop {
        for script in case.script.lesser() {
            let lesser = Case { script, ..case.clone() };
            for _ in 0..TRIES {
                if begun.elapsed() > SHRINKING {
                    return Ok((case, ended));
                }
                let tried = lesser.run(true)?;
                if matches!(tried.verdict, Verdict::Fails(_)) {
                    (case, ended) = (lesser, tried);
                    continue 'smaller;
                }
            }
        }
        return Ok((case, ended));
    }
}

/// Runs the apps of this program by random scripts, or by one, and checks each run.
#[derive(Debug, Parser)]
#[command(name = "fuzz-apps")]
struct Options {
    /// Seed of the scripts
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Number of scripts for each app
    #[arg(long, default_value_t = 1)]
    scripts: u64,

    /// Seconds after which no further run starts
    #[arg(long)]
    seconds: Option<u64>,

    /// Number of failures after which the program stops
    #[arg(long, default_value_t = 3)]
    failures: usize,

    /// Only this app
    #[arg(long)]
    app: Option<String>,

    /// One script, as a failure prints it, instead of random ones
    #[arg(long)]
    script: Option<Script>,

    /// Only this kind of time
    #[arg(long)]
    time: Option<Time>,

    /// Only as this user: root or nobody
    #[arg(long = "user", value_name = "USER", value_parser = is_root)]
    privileged: Option<bool>,

    /// Do not shrink a failing script
    #[arg(long)]
    as_it_is: bool,
}

fn is_root(user: &str) -> Result<bool, String> {
    match user {
        "root" => Ok(true),
        "nobody" => Ok(false),
        other => Err(format!("the user is root or nobody, not `{other}`")),
    }
}
