//! One run: an app and a script in a process, and the verdict on its end.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use crate::app::{App, Idle};
use crate::child::{SKIPPED, Time};
use crate::ledger::{self, Ledger, RELAXED};
use crate::script::Script;

use super::process::{self, LIMIT};

/// First argument of a child.
pub(super) const CHILD: &str = "child";

/// Maximum number of printed lines of a child's output.
const SHOWN: usize = 80;

/// Run.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) app: &'static App,
    pub(super) time: Time,
    pub(super) privileged: bool,
    pub(super) script: Script,
}

/// Verdict on a run.
#[derive(Debug)]
pub(super) enum Verdict {
    Holds,
    /// The machine does not meet the app's requirements.
    Skipped,
    /// The process was killed while jobs ran, which is allowed on a busy machine.
    Late(Vec<String>),
    Fails(Vec<String>),
}

impl Verdict {
    pub(super) fn lines(&self) -> &[String] {
        match self {
            Self::Holds | Self::Skipped => &[],
            Self::Late(lines) | Self::Fails(lines) => lines,
        }
    }
}

/// End of a run.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    pub(super) jobs: u64,
    pub(super) panics: u64,
    pub(super) hooks: u64,
    output: String,
}

impl Ended {
    /// Returns the last lines of the output.
    pub(super) fn last_words(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.output.lines().collect();
        lines[lines.len().saturating_sub(SHOWN)..].to_vec()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = if self.privileged { "as this user" } else { "as nobody" };
        write!(f, "{} in {} time {user}: {}", self.app.name, self.time.name(), self.script)
    }
}

impl Case {
    /// Returns the command that repeats the run.
    pub(super) fn command(&self) -> String {
        let App { seed, executor, .. } = self.app;
        let user = if self.privileged { "root" } else { "nobody" };
        format!(
            "cargo xtask fuzz apps --seed {seed} --count 1 --executor {executor} -- --as-it-is --time {} --user {user} \
             --script '{}'",
            self.time.name(),
            self.script
        )
    }

    /// Executes the run, with a high priority if `urgent`.
    pub(super) fn run(&self, urgent: bool) -> Result<Ended, String> {
        let failed = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
        let (books, ledger) = Ledger::new().map_err(failed("the ledger"))?;
        let mut output = ledger::memory().map_err(failed("a file for the output"))?;
        let mut command = Command::new(format!("/proc/self/fd/{}", executable()));
        let words = [
            CHILD,
            self.app.name,
            self.time.name(),
            &books.as_raw_fd().to_string(),
            &self.script.to_string(),
        ];
        command.args(words).env_clear().current_dir("/").stdin(Stdio::null());
        let printed = || output.try_clone().map_err(failed("a file for the output"));
        command.stdout(printed()?);
        match self.script.deaf {
            0 => command.stderr(printed()?),
            _ => command.stderr(File::create("/dev/full").map_err(failed("/dev/full"))?),
        };
        if !self.privileged {
            process::no_privileges(&mut command);
        }
        process::no_runaways(&mut command);
        let child = if urgent { process::before_others(|| command.spawn()) } else { command.spawn() };
        let mut child = child.map_err(failed("starting a child"))?;
        let end = process::wait(&mut child).map_err(failed("waiting for a child"))?;
        let mut text = String::new();
        output.rewind().and_then(|()| output.read_to_string(&mut text)).map_err(failed("the output"))?;
        let jobs = ledger.tasks.iter().map(|jobs| u64::from(jobs.runs.load(RELAXED))).sum();
        let ended = Ended {
            verdict: self.judge(end, ledger, &text),
            jobs,
            panics: ledger.panics.load(RELAXED).into(),
            hooks: ledger.hooks.load(RELAXED).into(),
            output: text,
        };
        // SAFETY: the child has ended, and nothing here refers to the ledger afterwards.
        unsafe { Ledger::unmap(ledger) };
        Ok(ended)
    }

    fn judge(&self, end: process::End, ledger: &Ledger, output: &str) -> Verdict {
        let mut violations = ledger.violations();
        if let Some(line) = output.lines().find(|line| line.contains("`the executor` panicked")) {
            violations.push(line.to_owned());
        }
        // Violations that the process has detected do not depend on the load of the machine.
        let is_excused = violations.is_empty() && end.was_hindered;
        let late =
            |violations| if is_excused { Verdict::Late(violations) } else { Verdict::Fails(violations) };
        let status = match end.status {
            Ok(status) if status.code() == Some(SKIPPED) => return Verdict::Skipped,
            Ok(status) => status,
            Err(threads) => {
                violations.push(format!("killed after {} s, with threads {threads}", LIMIT.as_secs()));
                return late(violations);
            }
        };
        let (panics, signals) = (ledger.panics.load(RELAXED), ledger.signals.load(RELAXED));
        let stops = self.app.tasks.iter().any(|task| task.stops);
        if ledger.closed.load(RELAXED) != 0 {
            // The process has compared the report, which contains the reason, with the events.
            let expected = |code| if panics > 0 { code == 101 } else { code == 0 || code == 1 && stops };
            if !status.code().is_some_and(expected) {
                violations.push(format!("{status} after {panics} panics"));
            }
        } else if status.code() == Some(128 + libc::SIGTERM) && signals > 1 {
            // The second signal of a run ends the process at once.
        } else if let Some(wrong) = self.under_idle(status, ledger) {
            violations.push(wrong);
            let ended_under_jobs = ledger.hooks.load(RELAXED) == 0 && matches!(status.code(), Some(1 | 101));
            return if ended_under_jobs { late(violations) } else { Verdict::Fails(violations) };
        }
        if violations.is_empty() { Verdict::Holds } else { Verdict::Fails(violations) }
    }

    /// Returns the error of a process whose run has not returned, which is allowed only if `idle`
    /// runs forever.
    fn under_idle(&self, status: ExitStatus, ledger: &Ledger) -> Option<String> {
        let [panics, idle_panics, idling, hooks] =
            [&ledger.panics, &ledger.idle_panics, &ledger.idling, &ledger.hooks]
                .map(|count| count.load(RELAXED));
        let (Idle::Stubborn { in_common, locks }, true) = (self.app.idle, idling != 0 || idle_panics > 0)
        else {
            return Some(format!("{status} before the run had returned"));
        };
        let hook = self.app.hook && !in_common;
        // A level that `idle` holds at every check counts as a job. The global executor has no such
        // levels.
        let may_be_kept = hook && locks && !self.app.is_global();
        let hook_is_right = hooks == u32::from(hook) || hooks == 0 && may_be_kept;
        let without = self.app.hook && hooks == 0;
        let stops = self.app.tasks.iter().any(|task| task.stops);
        let expected = |code| match code {
            101 => panics > 0,
            // A panic of `idle` itself may be reported too late.
            0 => panics == idle_panics && !without,
            1 => panics == idle_panics && (without || stops),
            _ => false,
        };
        let is_right = hook_is_right && status.code().is_some_and(expected);
        (!is_right).then(|| {
            format!("{status} under an idle that does not end, after {panics} panics and {hooks} hooks; the hook may run: {hook}")
        })
    }
}

/// Returns a descriptor of this executable that children inherit, since `nobody` may not read its
/// directory.
fn executable() -> i32 {
    static EXECUTABLE: OnceLock<File> = OnceLock::new();
    let file = EXECUTABLE.get_or_init(|| {
        let file = File::open("/proc/self/exe").expect("a process may read its own executable");
        // SAFETY: the descriptor is open; its copy lacks the flag that closes it on exec.
        let copy = unsafe { libc::dup(file.as_raw_fd()) };
        assert!(copy >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the copy is new and has no other owner.
        unsafe { File::from_raw_fd(copy) }
    });
    file.as_raw_fd()
}
