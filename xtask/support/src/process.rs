//! Running a program: with its output passed on, or captured and bounded in time.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::{Result, cargo};

/// The interval at which a running program is polled for its end.
const POLL: Duration = Duration::from_millis(5);

/// The time for which a program's output may stay open after its end; after that, a process it left
/// behind holds it open.
const GRACE: Duration = Duration::from_secs(1);

/// Limit for a check or a session: the longest check, a nightly run of all mutations, takes less.
pub const RUN_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Limit for a tool that answers a question, which takes seconds unless the machine is very busy.
pub const TOOL_LIMIT: Duration = Duration::from_secs(300);

/// Limit for a tool that downloads and builds another one.
pub const INSTALL_LIMIT: Duration = Duration::from_secs(3600);

/// Larger output indicates a runaway program; it is truncated by closing the pipe.
const OUTPUT_LIMIT: u64 = 4 << 20;

/// The outcome of a program.
pub struct Outcome {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// How it ended.
    pub end: End,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was killed after this time.
    TimedOut(Duration),
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Signalled(signal.unwrap_or_default()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "signal {signal}"),
            Self::TimedOut(limit) => write!(f, "killed after {} s", limit.as_secs()),
        }
    }
}

/// Runs `command` with this process's output and no input, for at most a day, and requires that it
/// succeeds.
pub fn succeed(command: &mut Command) -> Result {
    let status =
        command.stdin(Stdio::null()).status_within(RUN_LIMIT).map_err(|error| cannot_run(command, &error))?;
    match End::from(status) {
        End::Exited(0) => Ok(()),
        end => Err(format!("{end} from {command:?}").into()),
    }
}

/// Returns the standard output of `command`, which must succeed within `limit`. Its standard error
/// is passed on.
pub fn stdout(command: &mut Command, limit: Duration) -> Result<String> {
    let output = command.stdout_within(limit).map_err(|error| cannot_run(command, &error))?;
    match End::from(output.status) {
        End::Exited(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        end => Err(format!("{end} from {command:?}").into()),
    }
}

/// Returns whether `command`, which asks a tool for its version, succeeds.
pub fn answers(command: &mut Command) -> bool {
    command.output_within(TOOL_LIMIT).is_ok_and(|output| output.status.success())
}

/// Returns the output of git in the workspace.
pub fn git(arguments: &[&str]) -> Result<String> {
    stdout(Command::new("git").args(arguments).current_dir(cargo::root()), TOOL_LIMIT)
}

/// Runs `command` without input, captures its output, and kills it after `limit`.
pub fn capture(command: &mut Command, limit: Duration) -> Result<Outcome> {
    observe(command, limit, |child, in_time| if in_time { Ok(()) } else { child.kill() })
}

/// Like [`capture`], but also kills all processes that the program has started.
pub fn capture_all(command: &mut Command, limit: Duration) -> Result<Outcome> {
    observe(command.process_group(0), limit, |child, _| {
        Ok(rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL)?)
    })
}

/// Waits for the end of `command`, or until `limit` has passed, and then calls `clean_up` with
/// whether the program has ended. Its process still exists at that time, if only as a zombie.
#[expect(clippy::disallowed_methods, reason = "with NOHANG the call does not block")]
fn observe(
    command: &mut Command,
    limit: Duration,
    clean_up: impl Fn(&mut Child, bool) -> io::Result<()>,
) -> Result<Outcome> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_run(command, &error))?;
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);

    let deadline = Instant::now() + limit;
    let has_ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let in_time = loop {
        if rustix::process::waitid(WaitId::Pid(Pid::from_child(&child)), has_ended)?.is_some() {
            break true;
        }
        if Instant::now() >= deadline {
            break false;
        }
        thread::sleep(POLL);
    };
    clean_up(&mut child, in_time)?;
    let status = child.end_at_once()?.ok_or_else(|| format!("{command:?} does not end at SIGKILL"))?;
    let end = if in_time { status.into() } else { End::TimedOut(limit) };

    let collect = |pipe: Option<Receiver<Vec<u8>>>| -> Result<String> {
        let bytes = pipe
            .and_then(|pipe| pipe.recv_timeout(GRACE).ok())
            .ok_or_else(|| format!("{command:?} left a process behind that holds its output open"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Outcome { stdout: collect(stdout)?, stderr: collect(stderr)?, end })
}

/// Reads `pipe` to its end on a separate thread, so that a full pipe never blocks the program.
fn drain(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error ends the output like an end of file; the output read so far is the most useful
        // information.
        let _ = pipe.take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        // The receiver is gone only if the caller has stopped waiting for this program.
        let _ = sender.send(bytes);
    });
    receiver
}

/// Passes on the lines of `pipe` by a thread that ends with it, so that a reader can bound its
/// wait.
pub fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    receiver
}

/// Returns how many CPUs the process with this `/proc/<pid>/status` may use, regardless of its
/// share of their time.
pub fn allowed_cpus(status: &str) -> usize {
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap_or_default();
    mask.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit.count_ones() as usize).sum()
}

fn cannot_run(command: &Command, error: &io::Error) -> String {
    format!("cannot run {}: {error}", command.get_program().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn captures_output_and_exit_code() {
        let outcome = capture(&mut shell("echo out; echo err >&2; exit 3"), GRACE * 10).unwrap();
        assert_eq!(outcome.stdout, "out\n");
        assert_eq!(outcome.stderr, "err\n");
        assert_eq!(outcome.end, End::Exited(3));
    }

    #[test]
    fn distinguishes_signal_from_exit_code() {
        assert_eq!(capture(&mut shell("kill -9 $$"), GRACE * 10).unwrap().end, End::Signalled(9));
    }

    #[test]
    fn kills_program_at_time_limit() {
        let limit = Duration::from_millis(50);
        let outcome = capture(&mut shell("exec sleep 60"), limit).unwrap();
        assert_eq!(outcome.end, End::TimedOut(limit));
    }

    #[test]
    fn counts_allowed_cpus() {
        assert_eq!(allowed_cpus("Cpus_allowed:\tf0,00000003\nCpus_allowed_list:\t0-1,36-39\n"), 6);
        assert_eq!(allowed_cpus("Name:\tx\nCpus_allowed:\t1\n"), 1);
    }

    #[test]
    fn kills_orphaned_children() {
        let began = Instant::now();
        let outcome = capture_all(&mut shell("sleep 60 & echo done"), GRACE * 10).unwrap();
        assert_eq!((outcome.stdout.as_str(), outcome.end), ("done\n", End::Exited(0)));
        let limit = Duration::from_millis(50);
        let outcome = capture_all(&mut shell("sleep 60 & sleep 60"), limit).unwrap();
        assert_eq!(outcome.end, End::TimedOut(limit));
        assert!(began.elapsed() < GRACE * 30, "the output is closed, so the process has ended");
    }

    #[test]
    fn passes_on_lines_including_unterminated_last() {
        let lines = lines(&b"one\n\xff two\nthree"[..]);
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["one", "\u{fffd} two", "three"]);
    }

    #[test]
    fn reports_remaining_process() {
        assert!(capture(&mut shell("sleep 3 & echo done"), GRACE * 10).is_err());
    }
}
