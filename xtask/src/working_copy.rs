//! Copies of packages in the target directory, to be changed and built: seeded bugs never touch the
//! user's sources.
//!
//! Each copy is a workspace with a separate target directory, so several copies build concurrently.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use punctual_process::child::BoundedCommand;
use rustix::fs::FlockOperation;
use serde_json::Value;
use toml::Table;

use crate::cargo::{self, Artifact};
use crate::confined::{self, Limits};
use crate::process::Outcome;
use crate::{Result, files};

/// Preemptions per execution that are explored by default; most concurrency bugs need at most two.
pub(crate) const PREEMPTIONS: &str = "3";
pub(crate) const PREEMPTIONS_VARIABLE: &str = "LOOM_MAX_PREEMPTIONS";

/// Test target of a package's models.
pub(crate) const MODELS: &str = "loom";

/// The build of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// With `--cfg loom`, which replaces the atomics of every crate.
    Model,
    /// Without special flags, as users build it.
    Test,
}

impl Kind {
    /// Returns the limits of a test.
    pub(crate) fn limits(self, processor: Duration) -> Limits {
        match self {
            Self::Model => Limits::computing(processor),
            Self::Test => Limits::sleeping(processor),
        }
    }

    /// Returns the kind of the test target of this name.
    pub(crate) fn of(target: &str) -> Self {
        if target == MODELS { Self::Model } else { Self::Test }
    }
}

/// A compiler error.
#[derive(Debug, Clone)]
pub(crate) struct Complaint {
    pub(crate) text: String,
    /// The file, as the compiler names it, and the bytes in it.
    pub(crate) place: Option<(String, std::ops::Range<usize>)>,
}

/// The result of a build.
pub(crate) enum Build {
    Done(Vec<Artifact>),
    Failed(Vec<Complaint>),
}

impl Build {
    /// Returns the executables; turns a failed build into an error.
    pub(crate) fn done(self) -> Result<Vec<Artifact>> {
        match self {
            Self::Done(built) => Ok(built),
            Self::Failed(complaints) => {
                let text: Vec<_> = complaints.into_iter().map(|complaint| complaint.text).collect();
                Err(format!("the build failed:\n{}", text.join("\n")).into())
            }
        }
    }
}

/// A copy of some packages and of those that they need.
pub(crate) struct WorkingCopy {
    root: PathBuf,
    /// Prevents a second run from using this directory.
    _lock: File,
}

impl WorkingCopy {
    /// Updates `target/working-copies/<name>` to the state of the user's tree.
    pub(crate) fn new(name: &str, packages: &[&str]) -> Result<Self> {
        let root = cargo::target_dir().join("working-copies").join(name);
        fs::create_dir_all(&root)?;
        let lock = File::create(root.join("lock"))?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            println!("waiting for another run to release {}", root.display());
            rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        }
        let copy = Self { root, _lock: lock };

        let metadata = cargo::metadata()?;
        let members = with_dependencies(&metadata, packages);
        let mut manifest: Table = fs::read_to_string(cargo::root().join("Cargo.toml"))?.parse()?;
        if let Some(workspace) = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut) {
            workspace.remove("default-members");
            let paths = members.iter().map(|member| Ok(relative(&metadata, member)?.into()));
            workspace.insert("members".to_owned(), toml::Value::Array(paths.collect::<Result<_>>()?));
        }
        put(&copy.root.join("Cargo.toml"), toml::to_string(&manifest)?.as_bytes())?;
        // Written only once, because cargo removes the entries that these packages do not need.
        if !copy.root.join("Cargo.lock").exists() {
            fs::copy(cargo::root().join("Cargo.lock"), copy.root.join("Cargo.lock"))?;
        }
        // Tests validate the output against the schemas there.
        mirror(&cargo::root().join("docs"), &copy.root.join("docs"))?;
        for member in &members {
            let path = relative(&metadata, member)?;
            let (from, to) = (cargo::root().join(&path), copy.root.join(&path));
            let manifest = slim(&from)?;
            mirror(&from, &to)?;
            put(&to.join("Cargo.toml"), manifest.as_bytes())?;
        }
        Ok(copy)
    }

    /// Returns the copy of these packages for builds with seeds and mutations.
    pub(crate) fn of(packages: &[&str]) -> Result<Self> {
        Self::new(&packages.join("+"), packages)
    }

    pub(crate) fn package(&self, name: &str) -> PathBuf {
        self.root.join("crates").join(name)
    }

    /// Replaces a file of a package, unless it already has this content.
    pub(crate) fn write(&self, package: &str, file: &str, text: &str) -> Result {
        put(&self.package(package).join(file), text.as_bytes())
    }

    /// Builds test targets of a package. `lib` is the target of the unit tests.
    pub(crate) fn build(&self, kind: Kind, package: &str, targets: &[&str]) -> Result<Build> {
        let mut command = cargo::command();
        let user = env::var("RUSTFLAGS").unwrap_or_default();
        let model = if kind == Kind::Model { "--cfg loom" } else { "" };
        command
            .current_dir(&self.root)
            .args(["test", "--quiet", "--no-run", "--message-format=json", "-p", package])
            .env("RUSTFLAGS", format!("{user} --cap-lints allow {model}").trim())
            .env("CARGO_TARGET_DIR", self.root.join("target").join(kind.directory()))
            .env("CARGO_INCREMENTAL", "1")
            // Reduces the cost of the mutation switches in a process that is single-stepped.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        if kind == Kind::Model {
            command.args(["--profile", "models"]);
        }
        for target in targets {
            match *target {
                "lib" => command.arg("--lib"),
                target => command.args(["--test", target]),
            };
        }
        built(command)
    }

    /// Builds the programs of a package in release mode, as users do.
    pub(crate) fn build_program(&self, package: &str) -> Result<Build> {
        let mut command = cargo::command();
        let user = env::var("RUSTFLAGS").unwrap_or_default();
        command
            .current_dir(&self.root)
            .args(["build", "--quiet", "--release", "--message-format=json", "-p", package])
            .env("RUSTFLAGS", format!("{user} --cap-lints allow").trim())
            .env("CARGO_TARGET_DIR", self.root.join("target/programs"));
        built(command)
    }
}

/// Returns the build result of a cargo command.
fn built(mut command: Command) -> Result<Build> {
    let output = command.output_within(cargo::BUILD_LIMIT)?;
    let stdout = String::from_utf8(output.stdout)?;
    if output.status.success() {
        return Ok(Build::Done(cargo::artifacts(&stdout)?));
    }
    let mut complaints: Vec<_> = stdout.lines().filter_map(complaint).collect();
    if complaints.is_empty() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        complaints.push(Complaint { text, place: None });
    }
    Ok(Build::Failed(complaints))
}

impl Kind {
    fn directory(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Test => "tests",
        }
    }
}

/// Returns the name of the target of `artifact` in a table of tests.
pub(crate) fn target_name(artifact: &Artifact) -> &str {
    if artifact.target == artifact.package.replace('-', "_") { "lib" } else { &artifact.target }
}

/// Returns the integration tests that cargo finds in a package: files, and directories with a
/// `main.rs`.
pub(crate) fn test_targets(package: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(cargo::root().join("crates").join(package).join("tests"))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("rs")) || path.join("main.rs").is_file() {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    Ok(names)
}

/// Returns the tests in an executable.
pub(crate) fn test_names(path: &Path) -> Result<Vec<String>> {
    let limits = Limits::sleeping(Duration::from_secs(60));
    let listed = confined::run(path, limits, |command| {
        command.args(["--list", "--format", "terse"]);
    })?;
    Ok(listed.stdout.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs one test in a separate process, without real-time priorities. Models in one process run one
/// after another.
pub(crate) fn run_test(
    path: &Path,
    test: &str,
    limits: Limits,
    variables: &[(&str, &OsStr)],
) -> Result<Outcome> {
    let preemptions = env::var(PREEMPTIONS_VARIABLE).unwrap_or_else(|_| PREEMPTIONS.to_owned());
    confined::run(path, limits, |command| {
        command.args(["--exact", test, "--nocapture"]).env(PREEMPTIONS_VARIABLE, preemptions);
        command.env("RUST_BACKTRACE", "0").envs(variables.iter().copied());
    })
}

/// Returns the directory of a package, from the root of the workspace.
fn relative(metadata: &Value, name: &str) -> Result<String> {
    let package =
        metadata["packages"].as_array().into_iter().flatten().find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str()).map(Path::new);
    let directory = manifest.and_then(Path::parent).ok_or_else(|| format!("there is no package {name}"))?;
    Ok(directory.strip_prefix(cargo::root())?.to_string_lossy().into_owned())
}

/// Returns the packages and, transitively, their path dependencies.
fn with_dependencies(metadata: &Value, packages: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
    while let Some(name) = open.pop() {
        if !found.insert(name.clone()) {
            continue;
        }
        let all = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let package = all.iter().find(|package| package["name"] == name.as_str());
        let needed = package.and_then(|package| package["dependencies"].as_array()).into_iter().flatten();
        let local = needed.filter(|dependency| dependency["path"].is_string());
        open.extend(local.filter_map(|dependency| dependency["name"].as_str()).map(str::to_owned));
    }
    found
}

/// Returns the manifest of a package without its benchmarks and the dependencies only they need,
/// which take the longest to build.
fn slim(package: &Path) -> Result<String> {
    let mut manifest: Table = fs::read_to_string(package.join("Cargo.toml"))?.parse()?;
    manifest.remove("bench");
    let mut sources = String::new();
    for directory in ["src", "tests"] {
        for path in files::below(&package.join(directory), &["rs"])? {
            sources.push_str(&files::read(&path)?);
        }
    }
    if let Some(needed) = manifest.get_mut("dev-dependencies").and_then(toml::Value::as_table_mut) {
        needed.retain(|name, _| uses(&sources, name));
    }
    Ok(toml::to_string(&manifest)?)
}

/// Returns whether Rust code uses an item of a dependency with this name in the manifest.
pub(crate) fn uses(sources: &str, dependency: &str) -> bool {
    let path = format!("{}::", dependency.replace('-', "_"));
    let is_whole = |at: usize| !sources[..at].ends_with(|c: char| c == '_' || c.is_alphanumeric());
    sources.match_indices(&path).any(|(at, _)| is_whole(at))
}

/// Makes `to` a copy of `from`, except for manifest, benchmarks and build results; does not touch
/// files that are already equal, so that cargo does not rebuild.
fn mirror(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to)?;
    let mut retained = BTreeSet::from(["Cargo.toml".into()]);
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if ["Cargo.toml", "benches", "target"].iter().any(|&other| name == other) {
            continue;
        }
        if entry.path().is_dir() {
            mirror(&entry.path(), &to.join(&name))?;
        } else {
            put(&to.join(&name), &fs::read(entry.path())?)?;
        }
        retained.insert(name);
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !retained.contains(&entry.file_name()) {
            if entry.path().is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

fn put(path: &Path, contents: &[u8]) -> Result {
    if fs::read(path).is_ok_and(|now| now == contents) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    Ok(fs::write(path, contents)?)
}

/// Returns the error in a line of cargo's JSON messages, if there is one.
fn complaint(line: &str) -> Option<Complaint> {
    let message: Value = serde_json::from_str(line).ok()?;
    let message = &message["message"];
    if message["level"] != "error" {
        return None;
    }
    let spans = message["spans"].as_array()?;
    let place = spans.iter().find(|span| span["is_primary"] == true).and_then(|span| {
        let byte = |key: &str| span[key].as_u64().and_then(|byte| usize::try_from(byte).ok());
        Some((span["file_name"].as_str()?.to_owned(), byte("byte_start")?..byte("byte_end")?))
    });
    Some(Complaint { text: message["rendered"].as_str().unwrap_or_default().to_owned(), place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_dependencies_by_their_paths() {
        let sources = "//! As in `triple_buffer`.\nuse punctual_sync::G; my_log::f(); (libc::x)()";
        let used = ["punctual-sync", "libc", "triple_buffer", "log", "sync"].map(|name| uses(sources, name));
        assert_eq!(used, [true, true, false, false, false]);
    }
}
