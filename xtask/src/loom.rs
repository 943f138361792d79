//! `cargo xtask loom`: runs the models of the protocols, and verifies that they can fail.
//!
//! First, the models of all packages run and must pass, one per CPU at a time. Then each seed (see
//! [`crate::seeds`]) is enabled in a copy of its package, and its test must fail with a message.
//! Packages without models have seeds for ordinary tests.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Result;
use crate::process::End;
use crate::sample::Sample;
use crate::seeds::{self, Planted, Table};
use crate::working_copy::{self, Kind, WorkingCopy};

pub(crate) const PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// A model that has used more processor time than this loops because of the seed.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Args)]
pub(crate) struct Options {
    /// Package to check; may be repeated [default: all with models]
    #[arg(long = "package", value_name = "NAME", value_parser = seeded)]
    packages: Vec<&'static str>,

    /// List the seeds instead of catching them
    #[arg(long)]
    list: bool,

    /// Seed to catch, without running the models first; may be repeated [default: all, after the
    /// models]
    #[arg(long = "seed", value_name = "NAME")]
    seeds: Vec<String>,

    /// Catch only part N of M of the seeds; `commit/M` and `day/M` choose another part for each
    /// commit or day
    #[arg(long, value_name = "N/M")]
    sample: Option<Sample>,
}

/// Returns the package of this name, if it has models.
pub(crate) fn package(name: &str) -> Result<&'static str, String> {
    one_of(&PACKAGES, name)
}

/// Returns the package of this name, if it has seeds.
fn seeded(name: &str) -> Result<&'static str, String> {
    one_of(&seeds::PACKAGES, name)
}

fn one_of(packages: &'static [&'static str], name: &str) -> Result<&'static str, String> {
    let found = packages.iter().copied().find(|package| *package == name);
    found.ok_or_else(|| format!("{name}: it is none of {}", packages.join(", ")))
}

pub(crate) fn run(options: &Options) -> Result {
    let packages = if options.packages.is_empty() { PACKAGES.as_slice() } else { &options.packages };
    let mut tables = packages.iter().copied().map(Table::of).collect::<Result<Vec<_>>>()?;
    seeds::check_names(&options.seeds, &tables)?;
    for table in &mut tables {
        table.choose(&options.seeds, options.sample);
    }
    if options.list {
        for seed in tables.iter().flat_map(|table| &table.seeds) {
            let (target, test) = seed.test();
            println!("{}: {target}::{test}", seed.name);
        }
        return Ok(());
    }
    // In one order, so that each set of packages has one copy.
    tables.sort_by_key(|table| table.package);
    let copy = WorkingCopy::of(&tables.iter().map(|table| table.package).collect::<Vec<_>>())?;
    let all = options.seeds.is_empty();
    let planted = tables.into_iter().map(|table| {
        let with_models = all && PACKAGES.contains(&table.package);
        Planted::build(&copy, table.plant()?, with_models)
    });
    let planted = planted.collect::<Result<Vec<_>>>()?;
    if all {
        models(&planted)?;
    }
    // A failure of one package must not hide that of another.
    let caught = planted.iter().filter_map(|planted| planted.catch(&copy, all).err());
    let failed: Vec<_> = caught.map(|error| error.to_string()).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Runs the models of these packages, all of which must pass. They share the CPUs and run in
/// reverse order: the longest model is the last, and the first take milliseconds, so no CPU waits
/// for another at the end.
fn models(planted: &[Planted]) -> Result {
    let mut models = planted.iter().map(Planted::models).collect::<Result<Vec<_>>>()?.concat();
    models.reverse();
    let began = Instant::now();
    let failed = in_parallel(&models, cpus(), |_, (package, path, model)| {
        let began = Instant::now();
        let outcome = working_copy::run_test(path, model, Kind::Model.limits(LIMIT), &[])?;
        let passed = outcome.end == End::Exited(0);
        if passed {
            println!("{package}: {model}: passed in {:.1} s", began.elapsed().as_secs_f32());
        } else {
            println!("{package}: {model}: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
        }
        Ok(passed)
    })?;
    if failed > 0 {
        return Err(format!("models that fail: {failed}").into());
    }
    if !models.is_empty() {
        println!("models that pass: {}, in {} s", models.len(), began.elapsed().as_secs());
    }
    Ok(())
}

/// Returns the number of CPUs available to this process.
pub(crate) fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `job` for each of `items` on `threads` threads, passing the thread's index; returns how
/// often it returned `false`.
pub(crate) fn in_parallel<T: Sync>(
    items: &[T],
    threads: usize,
    job: impl Fn(usize, &T) -> Result<bool> + Sync,
) -> Result<usize> {
    let queue = Mutex::new(items.iter());
    let next = || queue.lock().expect("nothing panics with the queue").next();
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for index in 0..threads {
            let (next, failed, job) = (&next, &failed, &job);
            scope.spawn(move || {
                while let Some(item) = next() {
                    let error = match job(index, item) {
                        Ok(true) => continue,
                        Ok(false) => None,
                        Err(error) => Some(error.to_string()),
                    };
                    failed.lock().expect("nothing panics with the list").push(error);
                }
            });
        }
    });
    let failed = failed.into_inner()?;
    match failed.iter().flatten().next() {
        Some(error) => Err(error.as_str().into()),
        None => Ok(failed.len()),
    }
}

/// Returns the first line of the first panic's message.
pub(crate) fn panic_message(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines();
    lines.find(|line| line.contains("panicked at"))?;
    lines.map(str::trim).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::PACKAGES;
    use crate::{cargo, files};

    const NUMBERS: [&str; 6] = ["no", "one", "two", "three", "four", "five"];

    /// Returns the number of preemptions that a comment states after `Bound:`.
    fn stated(comment: &str) -> Option<usize> {
        let (_, bound) = comment.split_once("Bound: ")?;
        let (number, rest) = bound.split_once(' ')?;
        let number = NUMBERS.iter().position(|name| *name == number)?;
        rest.starts_with("preemption").then_some(number)
    }

    /// Returns what a file of models lacks: the bound in its head, or at a model that explores
    /// another number of preemptions than the head states.
    fn missing_bounds(text: &str) -> Vec<String> {
        let lines_with = |prefix| text.lines().filter_map(move |line: &str| line.strip_prefix(prefix));
        if lines_with("#[test]").next().is_none() {
            return Vec::new();
        }
        let head: Vec<_> = lines_with("//!").collect();
        let Some(of_file) = stated(&head.concat()) else { return vec!["no bound in the head".to_owned()] };
        let mut missing = Vec::new();
        let mut comment = String::new();
        for (index, line) in text.lines().enumerate() {
            if let Some(more) = line.strip_prefix("///") {
                comment.push_str(more);
            } else if line == "}" {
                comment.clear();
            }
            let Some((bound, _)) = line.split_once("check(").and_then(|(_, rest)| rest.split_once(','))
            else {
                continue;
            };
            // A variable is the parameter of a function that several models call.
            let Ok(bound) = bound.parse::<usize>() else { continue };
            let expected = stated(&comment).unwrap_or(of_file);
            if bound != expected {
                missing.push(format!("line {}: explores {bound}, states {expected}", index + 1));
            }
        }
        missing
    }

    #[test]
    fn finds_missing_and_wrong_bounds() {
        for call in ["check(2, ||", "share(Value::new).check(2, |value|"] {
            let model = format!("#[test]\nfn model() {{\n    {call} {{\n    }});\n}}\n");
            assert_eq!(missing_bounds(&format!("//! Head.\n{model}")), ["no bound in the head"]);
            let wrong = missing_bounds(&format!("//! Bound: three preemptions.\n{model}"));
            assert_eq!(wrong, ["line 4: explores 2, states 3"]);
            let own = format!("//! Bound: three preemptions.\n/// Bound: two preemptions.\n{model}");
            assert!(missing_bounds(&own).is_empty());
        }
        assert!(missing_bounds("//! A file without models.\n").is_empty());
    }

    #[test]
    fn each_model_states_its_preemption_bound() {
        let mut missing = Vec::new();
        for package in PACKAGES {
            let directory = cargo::root().join("crates").join(package).join("tests/loom");
            let mut models = 0;
            for path in files::below(&directory, &["rs"]).unwrap() {
                let text = files::read(&path).unwrap();
                models += text.matches("#[test]").count();
                let name = path.strip_prefix(cargo::root()).unwrap().display();
                missing.extend(missing_bounds(&text).into_iter().map(|what| format!("{name}: {what}")));
            }
            assert!(models > 0, "{package} has no models in {}", directory.display());
        }
        assert!(missing.is_empty(), "add `Bound: …` and the reason:\n{}", missing.join("\n"));
    }
}
