//! One example and its expected output.

mod header;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use header::{Header, Port, directives};
use similar::TextDiff;

use crate::process::{self, End, Outcome};
use crate::{Result, cargo};

/// The package whose examples are checked, and its directory in `crates/`.
pub const PACKAGE: &str = "punctual";

/// An example that takes longer hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The exit code of a program that has panicked.
const PANICKED: i32 = 101;

/// The beginning of the line on stderr with which the runtime reports missing real-time privileges.
const NO_REAL_TIME: &str = "punctual: without real-time";

/// An example, as found in the source tree.
#[derive(Clone)]
pub struct Golden {
    /// Its name, which is that of its source without the extension.
    pub name: String,
    /// Its directives for the checker.
    pub header: Header,
    /// The path of its source.
    pub source: PathBuf,
    /// The file with its expected output.
    pub expected: PathBuf,
}

/// How the output of a run is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Every byte.
    Exact,
    /// The lines, in any order: without real-time priorities, levels do not preempt each other;
    /// neither do levels on different CPUs.
    Any,
}

/// Compares a text with a file of the repository; returns the difference and how to accept it.
///
/// With `BLESS` in the environment, writes the text to the file first.
///
/// # Panics
///
/// If the file cannot be written.
#[must_use]
pub fn difference(file: &Path, actual: &str) -> Option<String> {
    if env::var_os("BLESS").is_some() {
        fs::write(file, actual).expect("the expected file can be written");
    }
    let difference = diff(&fs::read_to_string(file).unwrap_or_default(), actual)?;
    Some(format!("{}:\n{difference}\nBLESS=1 accepts the new text", file.display()))
}

/// Compares the table of a Markdown page that has these headings, like [`difference`].
///
/// # Panics
///
/// If the page cannot be read or written, or has no such table.
#[must_use]
pub fn table_difference<const N: usize>(
    page: &Path,
    head: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Option<String> {
    let line = |cells: &[String; N]| format!("| {} |\n", cells.join(" | "));
    let head = line(&head.map(str::to_owned));
    let text = fs::read_to_string(page).expect("the page can be read");
    let at = text.find(&head).unwrap_or_else(|| panic!("{}: no table begins with {head}", page.display()));
    let (before, table) = text.split_at(at);
    let length = table.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
    let rule = format!("|{}\n", "---|".repeat(N));
    let rows: String = rows.into_iter().map(|cells| line(&cells)).collect();
    difference(page, &[before, &head, &rule, &rows, &table[length..]].concat())
}

/// Returns the examples of [`PACKAGE`], by name.
pub fn examples() -> Result<Vec<Golden>> {
    Golden::discover(&cargo::root().join("crates").join(PACKAGE).join("examples"))
}

impl Golden {
    /// Returns all examples in `directory`, by name; their expected outputs are in its subdirectory
    /// `expected`.
    ///
    /// An expected output without an example is an error: its example has been renamed or removed.
    pub fn discover(directory: &Path) -> Result<Vec<Self>> {
        let mut examples = Vec::new();
        for name in stems(directory, "rs")? {
            let source = directory.join(&name).with_extension("rs");
            let header = Header::parse(&fs::read_to_string(&source)?)
                .map_err(|error| format!("example {name}: {error}"))?;
            let expected = directory.join("expected").join(&name).with_extension("txt");
            examples.push(Self { name, header, source, expected });
        }
        for name in stems(&directory.join("expected"), "txt")? {
            if !examples.iter().any(|example| example.name == name) {
                return Err(format!("expected/{name}.txt belongs to no example").into());
            }
        }
        Ok(examples)
    }

    /// Runs the example on `port` and compares its output with the expected output; the error
    /// describes the difference.
    pub fn check(&self, command: Command, port: Port) -> Result<Order> {
        // Before the run: without an expected output the run is unnecessary.
        self.expected()?;
        self.judge(&run(command, port)?, port)
    }

    /// Compares the outcome of a run on `port` with the expected output.
    pub fn judge(&self, outcome: &Outcome, port: Port) -> Result<Order> {
        let order = order(outcome, port);
        judge(&self.expected()?, outcome, self.header.exit, order)?;
        Ok(order)
    }

    /// Compares the lines of a run's output with the expected ones, in any order.
    pub fn judge_lines(&self, outcome: &Outcome) -> Result {
        Ok(judge(&self.expected()?, outcome, self.header.exit, Order::Any)?)
    }

    /// Runs a variant of the example on `port`, and compares the lines of its output with the
    /// expected ones, in any order.
    ///
    /// An example for one CPU only needs to end by itself: its expectations may fail on other
    /// executors. In virtual time only the program determines the order, so a second run must be
    /// the same.
    pub fn check_variant(&self, launch: &dyn Fn() -> Command, port: Port) -> Result {
        let outcome = run(launch(), port)?;
        let exit = match outcome.end {
            End::Exited(exit @ (0 | PANICKED)) if self.header.one_cpu => exit,
            _ => self.header.exit,
        };
        if self.header.one_cpu {
            judge_end(&outcome, exit)?;
        } else {
            judge(&self.expected()?, &outcome, exit, Order::Any)?;
        }
        if port == Port::Virtual {
            judge(&outcome.stdout, &run(launch(), port)?, exit, Order::Exact)
                .map_err(|error| format!("two runs on virtual time differ: {error}"))?;
        }
        Ok(())
    }

    fn expected(&self) -> Result<String> {
        match fs::read_to_string(&self.expected) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = &self.name;
                Err(format!("no expected output; `cargo xtask bless examples {name}` writes it").into())
            }
            other => Ok(other?),
        }
    }

    /// Runs the example on `port` and makes its output the expected one; returns whether that
    /// changed anything.
    pub fn bless(&self, command: Command, port: Port) -> Result<bool> {
        let outcome = run(command, port)?;
        judge_end(&outcome, self.header.exit)?;
        if order(&outcome, port) == Order::Any {
            return Err(
                "an output without real-time privileges is not blessed: its order is arbitrary".into()
            );
        }
        if fs::read(&self.expected).is_ok_and(|old| old == outcome.stdout.as_bytes()) {
            return Ok(false);
        }
        fs::create_dir_all(self.expected.parent().unwrap_or(Path::new("")))?;
        fs::write(&self.expected, &outcome.stdout)?;
        Ok(true)
    }
}

/// Returns the names, sorted and without extension, of the files in `directory` that have
/// `extension`.
fn stems(directory: &Path, extension: &str) -> Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension)
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn run(mut command: Command, port: Port) -> Result<Outcome> {
    process::capture(command.env(Port::VARIABLE, port.name()), TIME_LIMIT)
}

fn order(outcome: &Outcome, port: Port) -> Order {
    let without = outcome.stderr.lines().any(|line| line.starts_with(NO_REAL_TIME));
    if port == Port::Linux && without { Order::Any } else { Order::Exact }
}

/// Compares a run with its expected result.
fn judge(expected: &str, outcome: &Outcome, exit: i32, order: Order) -> Result<(), String> {
    judge_end(outcome, exit)?;
    let differences = match order {
        Order::Exact => diff(expected, &outcome.stdout),
        Order::Any => diff(&sorted(expected), &sorted(&outcome.stdout)),
    };
    match differences {
        None => Ok(()),
        Some(lines) => Err(format!("stdout differs (- expected, + found)\n{lines}{}", stderr(outcome))),
    }
}

fn judge_end(outcome: &Outcome, exit: i32) -> Result<(), String> {
    if outcome.end == End::Exited(exit) {
        return Ok(());
    }
    Err(format!("{} instead of exit code {exit}\n{}{}", outcome.end, outcome.stdout, stderr(outcome)))
}

fn stderr(outcome: &Outcome) -> String {
    if outcome.stderr.is_empty() { String::new() } else { format!("stderr:\n{}", outcome.stderr) }
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// A longer diff is truncated: its first lines show the cause.
const MAX_SHOWN: usize = 100;

/// Compares two texts line by line; returns `None` if they are equal to the byte.
///
/// Missing lines of `expected` begin with `-`, unexpected lines of `actual` with `+`.
pub fn diff(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let diff = TextDiff::from_lines(expected, actual).unified_diff().context_radius(CONTEXT).to_string();
    // Control characters are escaped: a stray carriage return must be visible.
    let mut lines = diff.split_terminator('\n').map(|line| format!("{}\n", line.escape_debug()));
    let mut text: String = lines.by_ref().take(MAX_SHOWN).collect();
    if lines.next().is_some() {
        text.push_str("... and more\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stdout: &str, stderr: &str, end: End) -> Outcome {
        Outcome { stdout: stdout.to_owned(), stderr: stderr.to_owned(), end }
    }

    #[test]
    fn allows_any_order_only_on_linux_without_privileges() {
        let poor = outcome("", "x\npunctual: without real-time scheduling: EPERM\n", End::Exited(0));
        assert_eq!(order(&poor, Port::Linux), Order::Any);
        assert_eq!(order(&poor, Port::Virtual), Order::Exact);
        assert_eq!(order(&outcome("", "", End::Exited(0)), Port::Linux), Order::Exact);
    }

    #[test]
    fn needs_every_line_in_any_order() {
        let run = outcome("b\na\n", "", End::Exited(0));
        assert!(judge("a\nb\n", &run, 0, Order::Any).is_ok());
        assert!(judge("a\nb\n", &run, 0, Order::Exact).is_err());
        assert!(judge("a\nb\nb\n", &run, 0, Order::Any).is_err());
    }

    #[test]
    fn requires_end_of_variants_and_equal_virtual_runs() {
        let check = |script: &'static str, port| {
            let header = Header::parse("//! one-cpu: a test").unwrap();
            let (source, expected) = (PathBuf::new(), PathBuf::from("/nonexistent"));
            let example = Golden { name: "example".to_owned(), header, source, expected };
            let launch = || {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            };
            example.check_variant(&launch, port).map_err(|error| error.to_string())
        };
        assert_eq!(check("echo text; exit 101", Port::Virtual), Ok(()));
        assert_eq!(check("echo $$", Port::Linux), Ok(()));
        assert!(check("echo $$", Port::Virtual).unwrap_err().starts_with("two runs on virtual time differ"));
        assert!(check("kill -9 $$", Port::Linux).unwrap_err().starts_with("signal 9"));
    }

    #[test]
    fn compares_exit_code_like_output() {
        assert!(judge("a\n", &outcome("a\n", "", End::Exited(101)), 101, Order::Exact).is_ok());
        let message = judge("a\n", &outcome("a\n", "why\n", End::Signalled(6)), 0, Order::Exact).unwrap_err();
        assert_eq!(message, "signal 6 instead of exit code 0\na\nstderr:\nwhy\n");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), None);
        assert_eq!(diff("", ""), None);
    }

    #[test]
    fn shows_changed_line_with_context() {
        let text = diff("1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n").unwrap();
        assert_eq!(text, "@@ -3,3 +3,3 @@\n 3\n 4\n-5\n+five\n");
    }

    #[test]
    fn shows_missing_final_newline_and_invisible_characters() {
        assert!(diff("a\n", "a").unwrap().contains("No newline at end of file"));
        assert!(diff("a\n", "a\r\n").unwrap().ends_with("-a\n+a\\r\n"));
    }

    #[test]
    fn cuts_long_diff() {
        let old: String = (0..3000).map(|i| format!("old {i}\n")).collect();
        let new: String = (0..3000).map(|i| format!("new {i}\n")).collect();
        let text = diff(&old, &new).unwrap();
        assert!(text.contains("-old 0\n"));
        assert_eq!(text.lines().count(), MAX_SHOWN + 1);
    }
}
