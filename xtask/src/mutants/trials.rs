//! Building mutations, and running the tests that reach them.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::mutation::Mutation;
use super::results::Outcome;
use super::sources::Source;
use super::switch::{self, Switched};
use crate::loom::{in_parallel, panic_message};
use crate::process::End;
use crate::working_copy::{self, Build, Kind, PREEMPTIONS_VARIABLE, WorkingCopy};
use crate::{Result, cargo};

/// The preemption bounds that models explore: first a small one, which is fast and finds most bugs,
/// then a larger one, unless a small bound was requested.
fn stages() -> Vec<String> {
    let (few, asked) = ("1".to_owned(), env::var(PREEMPTIONS_VARIABLE).unwrap_or_else(|_| "2".to_owned()));
    if asked == few { vec![few] } else { vec![few, asked] }
}

/// The minimum processor-time limit of a test; a slower test gets a multiple of its time without a
/// mutation.
const LIMIT: Duration = Duration::from_secs(10);
const TIMES: u32 = 5;
/// The limit of a model with a larger preemption bound.
const DEEP_LIMIT: Duration = Duration::from_secs(60);

/// Start of the panic message for an ordering that the operation does not allow: not a valid
/// mutation, although the compiler accepts it.
const IMPOSSIBLE: &str = "there is no such thing as";

/// The result of the tests for a mutation.
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) by: String,
    pub(super) said: String,
}

impl Verdict {
    fn new(outcome: Outcome, by: &str, said: &str) -> Self {
        let said = said.chars().take(200).collect();
        Self { outcome, by: by.to_owned(), said }
    }
}

/// One test in a build.
#[derive(Clone, Debug)]
struct Test {
    kind: Kind,
    target: String,
    name: String,
    path: PathBuf,
    /// Its duration without a mutation.
    took: Duration,
    /// The mutations that it reaches or, in a build of a single mutation, the files.
    reaches: BTreeSet<usize>,
}

/// The tests of a package in a build with the switches of many mutations.
pub(super) struct Trials<'a> {
    package: &'static str,
    sources: &'a [Source],
    mutations: &'a [(usize, Mutation)],
    /// By duration.
    tests: Vec<Test>,
    /// The mutations that are not in the build.
    pub(super) separate: BTreeSet<usize>,
    /// Models that exceed the time limit even without a mutation.
    endless: Mutex<BTreeMap<String, bool>>,
}

impl<'a> Trials<'a> {
    /// Builds the package with switches for these mutations, and runs its tests once.
    pub(super) fn prepare(
        copy: &WorkingCopy,
        package: &'static str,
        sources: &'a [Source],
        mutations: &'a [(usize, Mutation)],
    ) -> Result<Self> {
        let mut trials = Self {
            package,
            sources,
            mutations,
            tests: Vec::new(),
            separate: mutations.iter().filter(|(_, m)| m.constant).map(|(number, _)| *number).collect(),
            endless: Mutex::new(BTreeMap::new()),
        };
        let began = Instant::now();
        let built = trials.build_switched(copy)?;
        println!(
            "{package}: built in {} s, with {} mutations switched and {} not",
            began.elapsed().as_secs(),
            mutations.len() - trials.separate.len(),
            trials.separate.len()
        );
        let began = Instant::now();
        trials.run_unchanged(built)?;
        println!(
            "{package}: {} tests pass without a mutation, in {} s",
            trials.tests.len(),
            began.elapsed().as_secs()
        );
        Ok(trials)
    }

    /// Builds models and tests; removes mutations that the compiler rejects until it rejects none.
    fn build_switched(&mut self, copy: &WorkingCopy) -> Result<Vec<(Kind, cargo::Artifact)>> {
        loop {
            let mut switched = BTreeMap::new();
            for Source { file, text, .. } in self.sources {
                let here: Vec<_> = self
                    .mutations
                    .iter()
                    .filter(|(number, m)| m.file == *file && !self.separate.contains(number))
                    .map(|(number, mutation)| (*number, mutation))
                    .collect();
                let mut source = Switched::new(text, &here);
                if file == "src/lib.rs" {
                    let count = self.mutations.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
                    source.text.push_str(&switch::module(count));
                }
                copy.write(self.package, file, &source.text)?;
                switched.insert(format!("crates/{}/{file}", self.package), source);
            }
            let mut built = Vec::new();
            let mut refused = Vec::new();
            for (kind, targets) in self.targets()? {
                let targets: Vec<_> = targets.iter().map(String::as_str).collect();
                match copy.build(kind, self.package, &targets)? {
                    Build::Done(artifacts) => {
                        built.extend(artifacts.into_iter().map(|artifact| (kind, artifact)))
                    }
                    Build::Failed(complaints) => refused.extend(complaints),
                }
            }
            if refused.is_empty() {
                return Ok(built);
            }
            let before = self.separate.len();
            for (file, place) in refused.iter().filter_map(|complaint| complaint.place.as_ref()) {
                let blamed = switched.get(file).map(|source| source.to_blame(place));
                self.separate.extend(blamed.unwrap_or_default());
            }
            if self.separate.len() == before {
                let text: Vec<_> = refused.into_iter().map(|complaint| complaint.text).collect();
                return Err(
                    format!("{} with switches does not build:\n{}", self.package, text.join("\n")).into()
                );
            }
        }
    }

    /// Returns the existing targets of each kind.
    fn targets(&self) -> Result<[(Kind, Vec<String>); 2]> {
        let mut names = working_copy::test_targets(self.package)?;
        names.push("lib".to_owned());
        names.sort();
        let (models, tests) = names.into_iter().partition(|name| Kind::of(name) == Kind::Model);
        Ok([(Kind::Model, models), (Kind::Test, tests)])
    }

    /// Runs every test without a mutation: it must pass; records its duration and the mutations it
    /// reaches.
    fn run_unchanged(&mut self, built: Vec<(Kind, cargo::Artifact)>) -> Result {
        let mut names = Vec::new();
        for (kind, artifact) in &built {
            for name in working_copy::test_names(&artifact.path)? {
                names.push((*kind, artifact, name));
            }
        }
        let tests = Mutex::new(Vec::new());
        let few = &stages()[0];
        let failed = in_parallel(&names, 2, |index, (kind, artifact, name)| {
            let reached = cargo::target_dir().join("mutants").join(format!("reached-{index}"));
            fs::write(&reached, "")?;
            let began = Instant::now();
            let variables = [(PREEMPTIONS_VARIABLE, OsStr::new(few)), (switch::REACHED, reached.as_os_str())];
            let outcome =
                working_copy::run_test(&artifact.path, name, kind.limits(DEEP_LIMIT * 2), &variables)?;
            let target = working_copy::target_name(artifact).to_owned();
            if outcome.end != End::Exited(0) {
                println!("{target}::{name}: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
                return Ok(false);
            }
            let reaches = fs::read(&reached)?.into_iter().enumerate().filter(|(_, byte)| *byte != 0);
            let reaches = reaches.map(|(number, _)| number).collect();
            let (path, took) = (artifact.path.clone(), began.elapsed());
            let test = Test { kind: *kind, target, name: name.clone(), path, took, reaches };
            tests.lock().expect("nothing panics with the list").push(test);
            Ok(true)
        })?;
        if failed > 0 {
            return Err(format!("{}: {failed} tests fail without a mutation", self.package).into());
        }
        self.tests = tests.into_inner()?;
        self.tests.sort_by_key(|test| test.took);
        Ok(())
    }

    /// Tries a mutation that is in the build.
    pub(super) fn switched(&self, number: usize, thoroughly: bool) -> Result<Verdict> {
        let concerned: Vec<_> = self.tests.iter().filter(|test| test.reaches.contains(&number)).collect();
        if concerned.is_empty() && !thoroughly {
            return Ok(Verdict::new(Outcome::Survived, "", "no test comes by"));
        }
        // Larger preemption bounds apply to models, which may then reach mutations nearby that they
        // do not reach with a small bound.
        let neighbours = self.neighbours(number);
        let near = |test: &&Test| test.kind == Kind::Model && !test.reaches.is_disjoint(&neighbours);
        let deep = || self.tests.iter().filter(near).collect::<Vec<_>>();
        let number = number.to_string();
        let switch = (switch::CHOSEN, OsStr::new(&number));
        for (stage, preemptions) in stages().iter().take(if thoroughly { 2 } else { 1 }).enumerate() {
            for test in if stage == 0 { concerned.clone() } else { deep() } {
                if let Some(verdict) = self.run(test, &test.path, stage, preemptions, Some(switch))? {
                    return Ok(verdict);
                }
            }
        }
        Ok(Verdict::new(Outcome::Survived, "", &format!("{} tests come by", concerned.len())))
    }

    /// Tries a mutation by building it alone.
    pub(super) fn alone(&self, copy: &WorkingCopy, mutation: &Mutation, thoroughly: bool) -> Result<Verdict> {
        let source =
            self.sources.iter().find(|source| source.file == mutation.file).ok_or("no such source")?;
        copy.write(self.package, &mutation.file, &mutation.apply(&source.text))?;
        let verdict = self.build_and_run(copy, mutation, thoroughly);
        copy.write(self.package, &mutation.file, &source.text)?;
        verdict
    }

    fn build_and_run(&self, copy: &WorkingCopy, mutation: &Mutation, thoroughly: bool) -> Result<Verdict> {
        // A model that reaches a neighbor in the file may reach this mutation. So may any test;
        // some tests reach nothing else, such as those of errors that a constructor returns.
        let neighbours = self.of_file(&mutation.file);
        let near = |test: &&Test| test.kind == Kind::Test || !test.reaches.is_disjoint(&neighbours);
        let mut concerned: Vec<_> = self.tests.iter().filter(near).collect();
        if !concerned.iter().any(|test| test.kind == Kind::Model) {
            concerned = self.tests.iter().collect();
        }
        // Targets by the duration of their tests, the unit tests first.
        let mut targets: BTreeMap<&str, Duration> = BTreeMap::new();
        for test in &concerned {
            *targets.entry(&test.target).or_default() += test.took;
        }
        let mut order: Vec<_> = targets.into_iter().collect();
        order.sort_by_key(|(target, took)| (*target != "lib", *took));
        let mut built: Vec<(&Test, PathBuf)> = Vec::new();
        let stages = stages();
        for (target, _) in order {
            let kind = Kind::of(target);
            let artifacts = match copy.build(kind, self.package, &[target])? {
                Build::Done(artifacts) => artifacts,
                Build::Failed(complaints) => {
                    let text =
                        complaints.into_iter().next().map(|complaint| complaint.text).unwrap_or_default();
                    return Ok(Verdict::new(Outcome::NotBuilt, "", text.lines().next().unwrap_or_default()));
                }
            };
            let artifact =
                artifacts.into_iter().find(|artifact| working_copy::target_name(artifact) == target);
            let path = artifact.ok_or_else(|| format!("cargo built no {target}"))?.path;
            for test in concerned.iter().filter(|test| test.target == target) {
                if let Some(verdict) = self.run(test, &path, 0, &stages[0], None)? {
                    return Ok(verdict);
                }
                built.push((test, path.clone()));
            }
        }
        if let Some(more) = stages.get(1).filter(|_| thoroughly) {
            for (test, path) in built.iter().filter(|(test, _)| test.kind == Kind::Model) {
                if let Some(verdict) = self.run(test, path, 1, more, None)? {
                    return Ok(verdict);
                }
            }
        }
        Ok(Verdict::new(Outcome::Survived, "", &format!("{} tests run", concerned.len())))
    }

    /// Returns the mutations in the file of this one.
    fn neighbours(&self, number: usize) -> BTreeSet<usize> {
        let mutation = self.mutations.iter().find(|(other, _)| *other == number);
        mutation.map(|(_, mutation)| self.of_file(&mutation.file)).unwrap_or_default()
    }

    fn of_file(&self, file: &str) -> BTreeSet<usize> {
        let here = self.mutations.iter().filter(|(_, mutation)| mutation.file == file);
        here.map(|(number, _)| *number).collect()
    }

    /// Returns the verdict of one test, if it detects the mutation.
    fn run(
        &self,
        test: &Test,
        path: &Path,
        stage: usize,
        preemptions: &str,
        switch: Option<(&str, &OsStr)>,
    ) -> Result<Option<Verdict>> {
        let by = format!("{}::{}", test.target, test.name);
        let limit = if stage == 0 { LIMIT.max(test.took * TIMES) } else { DEEP_LIMIT };
        let variables: Vec<_> =
            [(PREEMPTIONS_VARIABLE, OsStr::new(preemptions))].into_iter().chain(switch).collect();
        let ended = working_copy::run_test(path, &test.name, test.kind.limits(limit), &variables)?;
        Ok(match ended.end {
            End::Exited(0) => None,
            // For a model that also exceeds the limit without the mutation, a timeout proves
            // nothing.
            End::TimedOut(_) if stage > 0 && self.is_endless(test, preemptions, &by)? => None,
            End::TimedOut(_) => Some(Verdict::new(Outcome::TimedOut, &by, &ended.end.to_string())),
            end => {
                let end = end.to_string();
                let said = panic_message(&ended.stderr).unwrap_or(&end);
                let outcome = if said.contains(IMPOSSIBLE) { Outcome::NotBuilt } else { Outcome::Caught };
                Some(Verdict::new(outcome, &by, said))
            }
        })
    }

    /// Returns whether a model takes at least half of the limit without a mutation.
    fn is_endless(&self, test: &Test, preemptions: &str, by: &str) -> Result<bool> {
        if let Some(known) = self.endless.lock().expect("nothing panics with the map").get(by) {
            return Ok(*known);
        }
        let variables = [(PREEMPTIONS_VARIABLE, OsStr::new(preemptions))];
        let ended =
            working_copy::run_test(&test.path, &test.name, test.kind.limits(DEEP_LIMIT / 2), &variables)?;
        let endless = matches!(ended.end, End::TimedOut(_));
        self.endless.lock().expect("nothing panics with the map").insert(by.to_owned(), endless);
        Ok(endless)
    }
}

/// Restores the sources in a copy.
pub(super) fn restore(copy: &WorkingCopy, package: &str, sources: &[Source]) -> Result {
    sources.iter().try_for_each(|Source { file, text, .. }| copy.write(package, file, text))
}
