//! Building with cargo, and determining the built executables from its output.

use std::env;
use std::path::{self, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Result;
use crate::process::{self, TOOL_LIMIT};

/// Cargo may wait for another build that holds its package cache.
const METADATA_LIMIT: Duration = Duration::from_secs(1800);

/// A build of the whole workspace from scratch on a slow machine takes less.
pub const BUILD_LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Returns the root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the package lies in the workspace")
}

/// Returns the directory that cargo builds in.
pub fn target_dir() -> PathBuf {
    chosen_target_dir().unwrap_or_else(|| root().join("target"))
}

/// Returns the target directory that the environment names, relative to the directory in which the
/// user typed the command.
fn chosen_target_dir() -> Option<PathBuf> {
    path::absolute(env::var_os("CARGO_TARGET_DIR")?).ok()
}

/// Returns a cargo command in the root of the workspace, with the cargo that started this program.
pub fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    if let Some(directory) = chosen_target_dir() {
        command.env("CARGO_TARGET_DIR", directory);
    }
    command
}

/// Returns cargo's metadata of the workspace.
pub fn metadata() -> Result<Value> {
    metadata_of(&mut command())
}

/// Returns cargo's metadata of the workspace in which `command` runs.
pub fn metadata_of(command: &mut Command) -> Result<Value> {
    command.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    Ok(serde_json::from_str(&process::stdout(command, METADATA_LIMIT)?)?)
}

/// Returns the output of the compiler, without its last line break.
pub fn rustc(arguments: &[&str]) -> Result<String> {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    Ok(process::stdout(rustc.args(arguments), TOOL_LIMIT)?.trim_end().to_owned())
}

/// Runs a `cargo test` command, and fails if one of its filters matches no test: a renamed test
/// must not disappear from a check unnoticed.
pub fn test(command: &mut Command) -> Result {
    if has_tests(command)? {
        process::succeed(command)
    } else {
        Err(format!("no test matches {command:?}").into())
    }
}

/// Builds the tests of a `cargo test` command, and returns whether there are any, and some for each
/// of its filters. The filters follow `--`, among options without values.
pub fn has_tests(command: &Command) -> Result<bool> {
    let mut list = Command::new(command.get_program());
    list.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => list.env(name, value),
            None => list.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        list.current_dir(directory);
    }
    if !command.get_args().any(|argument| argument == "--") {
        list.arg("--");
    }
    let listed = process::stdout(list.args(["--list", "--format", "terse"]), BUILD_LIMIT)?;
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    Ok(are_matched(&arguments, &listed))
}

/// Returns whether a list of tests has some for each filter in the arguments of a `cargo test`
/// command.
fn are_matched(arguments: &[impl AsRef<str>], listed: &str) -> bool {
    let arguments = arguments.iter().map(AsRef::as_ref);
    let mut filters =
        arguments.skip_while(|argument| *argument != "--").filter(|argument| !argument.starts_with('-'));
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    !tests.is_empty() && filters.all(|filter| tests.iter().any(|test| test.contains(filter)))
}

/// The purpose of an executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It runs the tests of a library, a binary or a file in `tests/`.
    Test,
    /// It is an example, to be run as it is.
    Example,
    /// Any other program.
    Other,
}

/// An executable that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The directory of its package, as in `crates/<package>`.
    pub package: String,
    /// The name of the target.
    pub target: String,
    /// The purpose for which it was built.
    pub purpose: Purpose,
    /// The path of the executable.
    pub path: PathBuf,
}

/// Runs a cargo command that builds, and returns the executables it built or found up to date.
pub fn build(command: &mut Command) -> Result<Vec<Artifact>> {
    command.arg("--message-format=json-render-diagnostics");
    artifacts(&process::stdout(command, BUILD_LIMIT)?)
}

/// Runs a cargo command that builds, and returns the executable of the target `name`.
pub fn program(command: &mut Command, name: &str) -> Result<PathBuf> {
    let found = build(command)?.into_iter().find(|artifact| artifact.target == name);
    Ok(found.ok_or_else(|| format!("cargo built no {name}"))?.path)
}

/// Returns the executables in cargo's JSON messages.
pub fn artifacts(messages: &str) -> Result<Vec<Artifact>> {
    messages.lines().filter_map(|line| artifact(line).transpose()).collect()
}

/// Returns the executable in a line of cargo's JSON messages, if there is one.
fn artifact(line: &str) -> Result<Option<Artifact>> {
    let message: Value = serde_json::from_str(line)?;
    let Some(path) = message["executable"].as_str() else {
        return Ok(None);
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let manifest = text(&message["manifest_path"]);
    let package = Path::new(&manifest).parent().and_then(Path::file_name).unwrap_or_default();
    let purpose = if message["profile"]["test"] == Value::Bool(true) {
        Purpose::Test
    } else if message["target"]["kind"][0] == "example" {
        Purpose::Example
    } else {
        Purpose::Other
    };
    Ok(Some(Artifact {
        package: package.to_string_lossy().into_owned(),
        target: text(&message["target"]["name"]),
        purpose,
        path: path.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_example_and_test() {
        let example = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/punctual/Cargo.toml",
            "target":{"kind":["example"],"name":"blink"},"profile":{"test":false},"executable":"/t/examples/blink"}"#;
        let found = artifact(example).unwrap().unwrap();
        assert_eq!(found.package, "punctual");
        assert_eq!(found.target, "blink");
        assert_eq!(found.purpose, Purpose::Example);
        assert_eq!(found.path, Path::new("/t/examples/blink"));

        let test = r#"{"manifest_path":"/w/crates/punctual-core/Cargo.toml","target":{"kind":["lib"],
            "name":"punctual_core"},"profile":{"test":true},"executable":"/t/deps/punctual_core-1"}"#;
        assert_eq!(artifact(test).unwrap().unwrap().purpose, Purpose::Test);
    }

    #[test]
    fn skips_messages_without_executable() {
        assert_eq!(artifact(r#"{"reason":"compiler-artifact","executable":null}"#).unwrap(), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#).unwrap(), None);
    }

    #[test]
    fn requires_tests_for_each_filter() {
        let listed = "a::one: test\nb::two: test\n";
        assert!(are_matched(&["test", "--test", "it"], listed));
        assert!(are_matched(&["test", "--test", "it", "--", "--nocapture", "a::", "b::two"], listed));
        assert!(!are_matched(&["test", "--test", "it", "--", "--ignored", "a::", "c::"], listed));
        assert!(!are_matched(&["test"], ""));
    }

    #[test]
    fn rejects_invalid_json() {
        assert!(artifact("error: nothing built").is_err());
    }
}
