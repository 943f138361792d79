//! Recording the next deadline miss: `punctual trace record --newest` of the app in a separate
//! process, which is asked to end soon after a job has missed its deadline.
//!
//! The kernel keeps the newest events until then, so waiting for days uses no disk space, and
//! nothing is written while the app is on time.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use punctual_core::metrics::Figure;
use punctual_process::child::{BoundedChild, BoundedCommand};
use rustix::process::{Pid, Signal, kill_process};

use super::find::Found;
use super::memory::Snapshot;

/// Time recorded after the miss was detected: later events show jobs delayed by it.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// Time for the recorder to write a miss while the view continues.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for the recorder to write its file after SIGINT, and to end after SIGTERM.
const END_GRACE: Duration = Duration::from_secs(10);

/// Result of the recording.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The miss is in this file.
    Recorded(PathBuf),
    /// The reason why there is none.
    Failed(String),
}

/// A recording that waits for a miss.
#[derive(Debug)]
pub(super) struct NextMiss {
    child: Child,
    file: PathBuf,
    process: u32,
    /// Earlier misses and overruns.
    before: u64,
    /// Time at which the recording is asked to end.
    until: Option<Instant>,
    /// Time at which it was asked.
    signaled: Option<Instant>,
}

impl NextMiss {
    /// Begins to record `app`, whose last update is `snapshot`.
    ///
    /// # Errors
    /// Returns an error if the recorder cannot be started.
    pub(super) fn start(app: &Found, snapshot: &Snapshot) -> io::Result<Self> {
        let file = free_name(Path::new(""), &app.app);
        let mut command = Command::new(std::env::current_exe()?);
        let process = app.process.to_string();
        command.args(["trace", "record", "--newest", "--pid", &process, "--output"]).arg(&file);
        Self::run(command, file, app.process, snapshot)
    }

    fn run(mut command: Command, file: PathBuf, process: u32, snapshot: &Snapshot) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // It ends on SIGINT, which a parent of this process may ignore.
        command.default_signals();
        // The signals of the terminal are for the view, which forwards those for the recording.
        command.process_group(0);
        let parent = rustix::process::getpid();
        let with_parent = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::INT))?;
            // It may have ended before.
            let is_there = rustix::process::getppid() == Some(parent);
            if is_there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        // SAFETY: between fork and exec it makes only system calls, allocates nothing and takes no
        // lock.
        unsafe { command.pre_exec(with_parent) };
        let child = command.spawn()?;
        Ok(Self { child, file, process, before: misses(snapshot), until: None, signaled: None })
    }

    /// Processes an update of `process`; if it is another one, the app has ended and so has the
    /// wait.
    pub(super) fn seen(&mut self, process: u32, snapshot: &Snapshot) {
        let has_missed = process == self.process && misses(snapshot) > self.before;
        if self.until.is_none() && (has_missed || process != self.process) {
            self.until = Some(Instant::now() + if has_missed { AFTERWARDS } else { Duration::ZERO });
        }
    }

    /// Returns the file, for people.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns whether a miss has been detected, which is being written.
    pub(super) fn has_miss(&self) -> bool {
        self.until.is_some()
    }

    /// Advances the recording; returns the result once it has ended.
    pub(super) fn step(&mut self) -> Option<Outcome> {
        match self.signaled {
            None if self.until.is_some_and(|until| Instant::now() >= until) => self.stop_recording(),
            Some(signaled) if signaled.elapsed() > WRITE_TIMEOUT => {
                let ended = self.child.terminate(END_GRACE);
                return Some(Outcome::Failed(format!(
                    "the recorder did not end within {} s of SIGINT{}",
                    WRITE_TIMEOUT.as_secs(),
                    if ended.is_ok() { ", and was ended" } else { "" }
                )));
            }
            _ => {}
        }
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(self.outcome(status)),
            Err(error) => Some(Outcome::Failed(format!("the recorder: {error}"))),
        }
    }

    /// Ends it without a miss.
    pub(super) fn cancel(mut self) {
        self.end_now();
    }

    fn stop_recording(&mut self) {
        self.signaled = Some(Instant::now());
        // The ID is still valid: the child has not been waited for.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
    }

    /// A recording without a miss is useless.
    fn end_now(&mut self) {
        let (has_miss, is_over) = (self.has_miss(), !matches!(self.child.try_wait(), Ok(None)));
        if !is_over {
            let _ = self.child.end(END_GRACE);
        }
        if !has_miss {
            let _ = std::fs::remove_file(&self.file);
        }
    }

    fn outcome(&mut self, status: ExitStatus) -> Outcome {
        let mut errors_text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            // Its output is a few lines; it has ended.
            let _ = errors.read_to_string(&mut errors_text);
        }
        match status.success() && self.has_miss() {
            true => Outcome::Recorded(self.file.clone()),
            false => {
                let why = errors_text.lines().find_map(|line| line.strip_prefix("error: "));
                let why = why.map_or_else(|| format!("the recorder ended early ({status})"), str::to_owned);
                Outcome::Failed(why)
            }
        }
    }
}

impl Drop for NextMiss {
    fn drop(&mut self) {
        self.end_now();
    }
}

/// Returns the number of all misses and overruns so far.
fn misses(snapshot: &Snapshot) -> u64 {
    let missed = [Figure::Misses, Figure::Overruns];
    let counts = snapshot.tasks.iter().flat_map(|task| missed.map(|figure| task.number(figure)));
    counts.fold(0, u64::saturating_add)
}

/// Returns the name of a file that does not exist, nor does the directory of its pages.
fn free_name(directory: &Path, app: &str) -> PathBuf {
    let app: String = app.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let name = |number: u32| match number {
        1 => format!("{app}-miss"),
        number => format!("{app}-miss-{number}"),
    };
    let is_free = |name: &String| {
        [".dat", ".dat.raw"]
            .iter()
            .all(|end| std::fs::symlink_metadata(directory.join(format!("{name}{end}"))).is_err())
    };
    let name = (1..u32::MAX).map(name).find(is_free).unwrap_or_else(|| name(u32::MAX));
    directory.join(name + ".dat")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::figures::tests::snapshot;

    fn snapshot_with(misses: u64) -> Snapshot {
        let mut snapshot = snapshot(Instant::now(), &[&[5_000], &[7_000]]);
        snapshot.tasks[1].numbers[Figure::Misses as usize] = misses;
        snapshot
    }

    fn shell(script: &str) -> NextMiss {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        NextMiss::run(command, "/nonexistent/app-miss.dat".into(), 411, &snapshot_with(3)).unwrap()
    }

    fn end_of(mut recording: NextMiss) -> Outcome {
        let begun = Instant::now();
        loop {
            if let Some(outcome) = recording.step() {
                return outcome;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it goes on");
            std::thread::yield_now();
        }
    }

    /// Ends on request.
    const RECORDER: &str = "trap 'exit 0' INT; while :; do sleep 0.01; done";

    #[test]
    fn ends_only_after_miss() {
        let mut recording = shell(RECORDER);
        recording.seen(411, &snapshot_with(3));
        assert!(!recording.has_miss() && recording.step().is_none());
        recording.seen(411, &snapshot_with(4));
        assert!(recording.has_miss());
        assert_eq!(end_of(recording), Outcome::Recorded("/nonexistent/app-miss.dat".into()));
    }

    #[test]
    fn ends_recorder_that_ignores_sigint() {
        let mut recording = shell("trap '' INT; while :; do sleep 0.01; done");
        // The shell needs some time to set its trap; without it, SIGINT ends it.
        std::thread::sleep(Duration::from_millis(100));
        let ended = recording.child.end(Duration::from_millis(200)).unwrap();
        assert!(ended.is_some(), "nothing ignores SIGTERM");
    }

    #[test]
    fn ends_with_app() {
        let mut recording = shell(RECORDER);
        recording.seen(412, &snapshot_with(0));
        assert!(recording.until.is_some_and(|until| until <= Instant::now()));
    }

    #[test]
    fn explains_missing_recording() {
        let refused = shell("echo 'warning: a'; echo 'error: tracing needs root' >&2; exit 1");
        assert_eq!(end_of(refused), Outcome::Failed("tracing needs root".into()));
        let died = shell("kill -9 $$");
        let Outcome::Failed(why) = end_of(died) else { panic!("there is no recording") };
        assert!(why.contains("signal: 9"), "{why}");
    }

    #[test]
    fn names_missing_file() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        std::fs::create_dir(directory.join("a_b-miss-2.dat.raw")).unwrap();
        assert_eq!(free_name(directory, "a/b"), directory.join("a_b-miss.dat"));
        std::fs::write(directory.join("a_b-miss.dat"), "").unwrap();
        assert_eq!(free_name(directory, "a/b"), directory.join("a_b-miss-3.dat"));
    }
}
