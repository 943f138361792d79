//! Skips of tests, or of parts of them, that need something the machine lacks, the lock of tests
//! that need the machine to themselves, and locked memory.
//!
//! The test harness has no state between passed and failed, and it hides the output of tests that
//! pass. [`skip`] prints a line past the harness, and appends it to a file of `cargo xtask test`,
//! which counts the lines by need.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_process::scheduling::set_policy;
use rustix::thread::{CapabilitySet, capabilities};

/// If this variable is `required`, missing tools are failures. `cargo xtask nightly` sets it.
pub const TOOLS: &str = "PUNCTUAL_TOOLS";

/// Names the file to which skips are appended.
const SKIPS: &str = "PUNCTUAL_TEST_SKIPS";

/// Something that a test needs and not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Two CPUs that the process may use.
    TwoCpus,
    /// All priorities of `SCHED_FIFO`.
    RealTime,
    /// The effective user 0.
    Root,
    /// This program, in a directory of `PATH`.
    Tool(&'static str),
    /// This module of `python3`.
    PythonModule(&'static str),
    /// The kernel that the lab boots.
    LabKernel,
    /// A tracefs that the process may use.
    Tracefs,
    /// Seccomp filters.
    Seccomp,
    /// A mount namespace.
    MountNamespace,
    /// Another capability of the kernel, the processor or the container.
    System(&'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoCpus => f.write_str("two CPUs"),
            Self::RealTime => f.write_str("real-time priorities"),
            Self::Root => f.write_str("root"),
            Self::Tool(name) => f.write_str(name),
            Self::PythonModule(name) => write!(f, "the Python module {name}"),
            Self::LabKernel => f.write_str("the kernel of `cargo xtask lab kernel rt`"),
            Self::Tracefs => f.write_str("tracefs"),
            Self::Seccomp => f.write_str("seccomp filters"),
            Self::MountNamespace => f.write_str("a mount namespace"),
            Self::System(what) => f.write_str(what),
        }
    }
}

impl Need {
    /// Returns whether the machine meets the need; `None` if only the test can find out.
    fn is_met(self) -> Option<bool> {
        match self {
            Self::TwoCpus => Some(thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)),
            Self::RealTime => Some(has_real_time()),
            // SAFETY: the call has no arguments and cannot fail.
            Self::Root => Some(unsafe { libc::geteuid() } == 0),
            Self::Tool(name) => Some(is_installed(name)),
            Self::PythonModule(name) => Some(has_module(name)),
            Self::LabKernel | Self::Tracefs | Self::Seccomp | Self::MountNamespace | Self::System(_) => None,
        }
    }

    fn is_installable(self) -> bool {
        matches!(self, Self::Tool(_) | Self::PythonModule(_) | Self::LabKernel)
    }
}

/// Waits until no other test of this process needs the machine to itself: apps with real-time
/// priorities prevent each other from running, and measurements and recordings disturb each other.
///
/// cargo-nextest runs each test in a process: `.config/nextest.toml` has a group for these tests.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the memory of this process until its end, if no limit applies to that.
pub fn lock_memory() {
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK)) {
        // SAFETY: the call takes no pointers.
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    }
}

/// Reports that the calling test does not check `unchecked`, because the machine lacks `need`.
///
/// # Panics
///
/// If the machine meets the need, or if the need is a tool while `PUNCTUAL_TOOLS` is `required`.
#[track_caller]
pub fn skip(need: Need, unchecked: impl fmt::Display) {
    assert!(need.is_met() != Some(true), "skipped for want of {need}, which this machine has: {unchecked}");
    let is_required = need.is_installable() && env::var_os(TOOLS).is_some_and(|value| value == "required");
    assert!(!is_required, "{TOOLS}=required, and {need} is missing: {unchecked}; install it");
    let line = line(thread::current().name().unwrap_or("?"), need, &unchecked.to_string());
    // Not by `eprint`, whose output the harness captures. A closed standard error must not fail the
    // test, nor a file of another user.
    let _ = io::stderr().write_all(format!("*** SKIPPED {line} ***\n").as_bytes());
    if let Some(path) = env::var_os(SKIPS) {
        let file = File::options().append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// Like [`skip`], for the first of several needs that the machine does not meet.
///
/// # Panics
///
/// If the machine meets them all, or as [`skip`] does.
#[track_caller]
pub fn skip_any(needs: &[Need], unchecked: impl fmt::Display) {
    let unmet = needs.iter().find(|need| need.is_met() != Some(true));
    skip(*unmet.expect("a test is skipped for a reason"), unchecked);
}

/// One line, which `cargo xtask test` parses.
fn line(test: &str, need: Need, unchecked: &str) -> String {
    format!("{test}: needs {need}: {}", unchecked.trim().replace('\n', " "))
}

/// Tries the highest priority in a thread that ends at once.
fn has_real_time() -> bool {
    thread::spawn(|| set_policy(libc::SCHED_FIFO, 99).is_ok()).join().unwrap_or(false)
}

/// Returns whether a directory of `PATH` has the program.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn has_module(name: &str) -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", &format!("import {name}")]).stdin(Stdio::null()).stdout(Stdio::null());
    python.stderr(Stdio::null()).status_within(TEST_LIMIT).is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_programs_and_modules() {
        assert!(is_installed("sh") && !is_installed("no-such-program"));
        assert!(!has_module("no_such_module"));
    }

    #[test]
    #[should_panic(expected = "skipped for want of sh, which this machine has: nothing")]
    fn fails_if_machine_meets_requirement() {
        skip(Need::Tool("sh"), "nothing");
    }

    #[test]
    #[should_panic(expected = "a test is skipped for a reason")]
    fn fails_if_the_machine_meets_all_needs() {
        skip_any(&[Need::Tool("sh"), Need::Tool("cat")], "nothing");
    }

    #[test]
    fn prints_one_line() {
        let line = line("a::b", Need::RealTime, "order\nof threads\n");
        assert_eq!(line, "a::b: needs real-time priorities: order of threads");
    }
}
