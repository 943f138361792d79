//! One build with the switches of many mutations, and the tests that reach them.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::mutation::Mutation;
use super::sources::Source;
use super::switch::{self, Switched};
use crate::loom::{cpus, in_parallel, panic_message};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Caught,
    /// A test hung.
    TimedOut,
    Survived,
    /// The compiler or the model checker rejects it.
    Invalid,
}

/// An outcome, with the test that decided it and its message.
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) reason: String,
}

/// One test in the build.
struct Test {
    kind: Kind,
    name: String,
    path: PathBuf,
    /// Its duration without a mutation.
    took: Duration,
    /// The mutations that it reaches.
    reaches: BTreeSet<usize>,
}

/// The tests of a package in the build.
pub(super) struct Trials<'a> {
    package: &'static str,
    mutations: &'a [Mutation],
    /// By duration.
    tests: Vec<Test>,
    /// Mutations that the compiler rejects.
    rejected: BTreeSet<usize>,
    /// Models that exceed the time limit even without a mutation.
    endless: Mutex<BTreeMap<String, bool>>,
}

impl<'a> Trials<'a> {
    /// Builds the package with switches for these mutations, and runs its tests once.
    pub(super) fn prepare(
        package: &'static str,
        sources: &[Source],
        mutations: &'a [Mutation],
    ) -> Result<Self> {
        let copy = WorkingCopy::of(&crate::loom::PACKAGES)?;
        let mut trials = Self {
            package,
            mutations,
            tests: Vec::new(),
            rejected: BTreeSet::new(),
            endless: Mutex::new(BTreeMap::new()),
        };
        let began = Instant::now();
        let built = trials.build(&copy, sources)?;
        println!(
            "{package}: {} mutations in one build, after {} s",
            mutations.len(),
            began.elapsed().as_secs()
        );
        trials.run_unchanged(built)?;
        println!("{package}: {} tests pass, after {} s", trials.tests.len(), began.elapsed().as_secs());
        Ok(trials)
    }

    /// Builds models and tests; removes mutations that the compiler rejects until it rejects none.
    fn build(&mut self, copy: &WorkingCopy, sources: &[Source]) -> Result<Vec<(Kind, cargo::Artifact)>> {
        let mut names = working_copy::test_targets(self.package)?;
        names.push("lib".to_owned());
        let (models, tests): (Vec<_>, Vec<_>) =
            names.iter().map(String::as_str).partition(|name| Kind::of(name) == Kind::Model);
        loop {
            let numbered = self.mutations.iter().enumerate();
            let numbered: Vec<_> = numbered.filter(|(number, _)| !self.rejected.contains(number)).collect();
            let count = self.mutations.len();
            let switched = Switched::write(copy, self.package, sources, &numbered, count)?;
            let (mut built, mut complaints) = (Vec::new(), Vec::new());
            for (kind, targets) in [(Kind::Model, &models), (Kind::Test, &tests)] {
                match copy.build(kind, self.package, targets)? {
                    Build::Done(artifacts) => {
                        built.extend(artifacts.into_iter().map(|artifact| (kind, artifact)))
                    }
                    Build::Failed(more) => complaints.extend(more),
                }
            }
            if complaints.is_empty() {
                return Ok(built);
            }
            let before = self.rejected.len();
            for (file, place) in complaints.iter().filter_map(|complaint| complaint.place.as_ref()) {
                let blamed = switched.get(file).map(|source| source.to_blame(place));
                self.rejected.extend(blamed.unwrap_or_default());
            }
            if self.rejected.len() == before {
                return Build::Failed(complaints).done().map(|_| Vec::new());
            }
        }
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
        let directory = cargo::target_dir().join("mutants");
        fs::create_dir_all(&directory)?;
        let tests = Mutex::new(Vec::new());
        let few = &stages()[0];
        let failed = in_parallel(&names, cpus(), |index, (kind, artifact, name)| {
            let reached = directory.join(format!("reached-{index}"));
            fs::write(&reached, "")?;
            let began = Instant::now();
            let variables = [(PREEMPTIONS_VARIABLE, OsStr::new(few)), (switch::REACHED, reached.as_os_str())];
            let limits = kind.limits(DEEP_LIMIT * 2);
            let outcome = working_copy::run_test(&artifact.path, name, limits, &variables)?;
            if outcome.end != End::Exited(0) {
                println!("{name}: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
                return Ok(false);
            }
            let reaches = fs::read(&reached)?.into_iter().enumerate().filter(|(_, byte)| *byte != 0);
            let reaches = reaches.map(|(number, _)| number).collect();
            let (path, took) = (artifact.path.clone(), began.elapsed());
            let test = Test { kind: *kind, name: name.clone(), path, took, reaches };
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

    /// Tries a mutation. For a mutation argued equivalent, larger preemption bounds are not worth
    /// their time.
    pub(super) fn verdict(&self, number: usize, is_argued: bool) -> Result<Verdict> {
        let verdict = |outcome, reason: String| Ok(Verdict { outcome, reason });
        if self.rejected.contains(&number) {
            return verdict(Outcome::Invalid, "the compiler rejects it".to_owned());
        }
        let concerned: Vec<_> = self.tests.iter().filter(|test| test.reaches.contains(&number)).collect();
        // With a larger bound, models may reach mutations that they only come close to with a small
        // one.
        let file = &self.mutations[number].file;
        let is_near = |other: &usize| self.mutations[*other].file == *file;
        let deep: Vec<_> = self
            .tests
            .iter()
            .filter(|test| test.kind == Kind::Model && test.reaches.iter().any(is_near))
            .collect();
        let switch = number.to_string();
        for (stage, preemptions) in stages().iter().take(if is_argued { 1 } else { 2 }).enumerate() {
            for test in if stage == 0 { &concerned } else { &deep } {
                let limit = if stage == 0 { LIMIT.max(test.took * TIMES) } else { DEEP_LIMIT };
                let variables =
                    [(PREEMPTIONS_VARIABLE, OsStr::new(preemptions)), (switch::CHOSEN, OsStr::new(&switch))];
                let limits = test.kind.limits(limit);
                let ended = working_copy::run_test(&test.path, &test.name, limits, &variables)?;
                match ended.end {
                    End::Exited(0) => {}
                    End::TimedOut(_) if stage > 0 && self.is_endless(test, preemptions)? => {}
                    End::TimedOut(_) => {
                        return verdict(Outcome::TimedOut, format!("{}: {}", test.name, ended.end));
                    }
                    end => {
                        let end = end.to_string();
                        let message = panic_message(&ended.stderr).unwrap_or(&end);
                        let is_valid = !message.contains(IMPOSSIBLE);
                        let outcome = if is_valid { Outcome::Caught } else { Outcome::Invalid };
                        return verdict(outcome, format!("{}: {message}", test.name));
                    }
                }
            }
        }
        verdict(Outcome::Survived, format!("reached by {} tests", concerned.len()))
    }

    /// Returns whether a model takes at least half of the limit without a mutation. Then exceeding
    /// the limit with a mutation proves nothing.
    fn is_endless(&self, test: &Test, preemptions: &str) -> Result<bool> {
        if let Some(known) = self.endless.lock().expect("nothing panics with the map").get(&test.name) {
            return Ok(*known);
        }
        let variables = [(PREEMPTIONS_VARIABLE, OsStr::new(preemptions))];
        let limits = test.kind.limits(DEEP_LIMIT / 2);
        let ended = working_copy::run_test(&test.path, &test.name, limits, &variables)?;
        let endless = matches!(ended.end, End::TimedOut(_));
        self.endless.lock().expect("nothing panics with the map").insert(test.name.clone(), endless);
        Ok(endless)
    }
}
