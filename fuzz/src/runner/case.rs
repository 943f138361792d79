//! One run: an app and a script in a process, and the judgement on how that ended.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::app::{App, Idle};
use crate::child::{SKIPPED, Time};
use crate::ledger::{self, Ledger, RELAXED};
use crate::limits;
use crate::script::Script;

/// The first word to a child.
pub(super) const CHILD: &str = "child";

/// A process that takes longer hangs: jobs take milliseconds, and the app's own patience is 5 s.
const LIMIT: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_micros(500);

/// How much is shown of what a child has said.
const SHOWN: usize = 80;

/// A run.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) app: &'static App,
    pub(super) time: Time,
    pub(super) privileged: bool,
    pub(super) script: Script,
}

/// What is to be said of it.
#[derive(Debug)]
pub(super) enum Verdict {
    Holds,
    /// The machine does not have what the app needs.
    Skipped,
    /// The process was ended under its jobs, which it may be on a machine that is too busy.
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

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    pub(super) jobs: u64,
    pub(super) panics: u64,
    pub(super) hooks: u64,
    output: String,
}

impl Ended {
    /// The end of what the process has printed.
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
    /// What to type to see it again.
    pub(super) fn command(&self) -> String {
        let App { seed, executor, .. } = self.app;
        let user = if self.privileged { "root" } else { "nobody" };
        format!(
            "cargo xtask fuzz apps --seed {seed} --count 1 --executor {executor} -- --as-it-is --time {} --user {user} \
             --script {}",
            self.time.name(),
            self.script
        )
    }

    /// Runs it.
    pub(super) fn run(&self) -> Result<Ended, String> {
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
        let said = || output.try_clone().map_err(failed("a file for the output"));
        command.stdout(said()?);
        match self.script.deaf {
            0 => command.stderr(said()?),
            _ => command.stderr(File::create("/dev/full").map_err(failed("/dev/full"))?),
        };
        if !self.privileged {
            limits::no_privileges(&mut command);
        }
        limits::no_runaways(&mut command);
        let mut child = command.spawn().map_err(failed("starting a child"))?;
        let status = wait(&mut child).map_err(failed("waiting for a child"))?;
        let mut text = String::new();
        output.rewind().and_then(|()| output.read_to_string(&mut text)).map_err(failed("the output"))?;
        let jobs = ledger.tasks.iter().map(|jobs| u64::from(jobs.runs.load(RELAXED))).sum();
        let ended = Ended {
            verdict: self.judge(status, ledger, &text),
            jobs,
            panics: ledger.panics.load(RELAXED).into(),
            hooks: ledger.hooks.load(RELAXED).into(),
            output: text,
        };
        // SAFETY: the child has ended, and nothing here refers to the books any more.
        unsafe { Ledger::unmap(ledger) };
        Ok(ended)
    }

    fn judge(&self, status: Result<ExitStatus, String>, ledger: &Ledger, output: &str) -> Verdict {
        let mut violations = ledger.violations();
        let status = match status {
            Ok(status) => status,
            Err(threads) => {
                violations.push(format!("killed after {} s, with threads {threads}", LIMIT.as_secs()));
                return Verdict::Fails(violations);
            }
        };
        let (panics, hooks) = (ledger.panics.load(RELAXED), ledger.hooks.load(RELAXED));
        if let Some(line) = output.lines().find(|line| line.contains("`the executor` panicked")) {
            violations.push(line.to_owned());
        }
        if status.code() == Some(SKIPPED) {
            return Verdict::Skipped;
        }
        if ledger.closed.load(RELAXED) != 0 {
            // The report says how, and the process has compared it with what happened.
            let expected = |code| if panics > 0 { code == 101 } else { code == 0 || code == 1 };
            if !status.code().is_some_and(expected) {
                violations.push(format!("{status} after {panics} panics"));
            }
        } else if status.code() == Some(128 + libc::SIGTERM) && ledger.signals.load(RELAXED) > 0 {
            // A signal while the app is stopping ends the process at once.
        } else if let (Idle::Stubborn { shares }, true) = (self.app.idle, ledger.idling.load(RELAXED) != 0) {
            let code = if panics > 0 { 101 } else { shares.into() };
            let wanted = u32::from(self.app.hook && !shares);
            if status.code() != Some(code) || hooks != wanted {
                violations.push(format!(
                    "{status} under an idle that does not end, instead of {code}; the hook ran {hooks} times, instead of {wanted}"
                ));
            }
        } else {
            violations.push(format!("{status} before the run had returned"));
            let late = violations.len() == 1 && status.signal().is_none();
            return if late { Verdict::Late(violations) } else { Verdict::Fails(violations) };
        }
        if violations.is_empty() { Verdict::Holds } else { Verdict::Fails(violations) }
    }
}

/// Waits for the child's end, but not for ever; then, what its threads were doing.
fn wait(child: &mut Child) -> std::io::Result<Result<ExitStatus, String>> {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Ok(status));
        }
        thread::sleep(TICK);
    }
    let threads = threads(child.id());
    child.kill()?;
    child.wait()?;
    Ok(Err(threads))
}

/// The threads of a process, each with its state and where it is in the kernel.
fn threads(process: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let each = tasks.map(|task| {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (name, stat) = (read("comm"), read("stat"));
        let state = stat.rsplit(") ").next().unwrap_or_default().chars().next().unwrap_or('?');
        format!("{} {state} {}", name.trim(), read("syscall").split(' ').next().unwrap_or_default().trim())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A descriptor of this executable that children inherit: it may lie where `nobody` cannot look.
fn executable() -> i32 {
    static EXECUTABLE: OnceLock<File> = OnceLock::new();
    let file = EXECUTABLE.get_or_init(|| {
        let file = File::open("/proc/self/exe").expect("a process may read its own executable");
        // SAFETY: the descriptor is open; its copy does not have the flag that closes it on exec.
        let copy = unsafe { libc::dup(file.as_raw_fd()) };
        assert!(copy >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the copy is new, so nobody else owns it.
        unsafe { File::from_raw_fd(copy) }
    });
    file.as_raw_fd()
}
