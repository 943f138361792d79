//! A headless browser, which opens pages to test them and draws them for people.

use std::path::Path;
use std::process::{Command, Stdio};

use punctual_process::child::BoundedCommand;

use crate::process::TOOL_LIMIT;

/// Names of the program in different distributions.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Returns the browser of this machine, if there is one.
#[must_use]
pub fn find() -> Option<&'static str> {
    let answers = |program: &&str| {
        let command = Command::new(program).arg("--version").stdin(Stdio::null()).output_within(TOOL_LIMIT);
        command.is_ok_and(|output| output.status.success())
    };
    PROGRAMS.into_iter().find(answers)
}

/// Returns a command that runs `program` without a window, with its profile in `directory`, until
/// the scripts of a page have run.
#[must_use]
pub fn command(program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg("--virtual-time-budget=2000")
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .env("HOME", directory)
        .stdin(Stdio::null());
    command
}
