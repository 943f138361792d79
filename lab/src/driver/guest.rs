//! One run of a machine: passes output on, and determines how it ended.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;
use xtask_support::Result;

use super::console::Console;
use super::machine::{Files, Machine, Mode};
use super::stage::{self, Job};
use crate::kernels::Kernel;
use crate::trouble::{Interrupt, POLL, Trouble};
use crate::workdir::{Workdir, at};

/// Receives the output of a command as it arrives; an error ends the run.
pub(crate) type Sink<'a> = dyn FnMut(Stream, &[u8]) -> Result + 'a;

/// The time limit for switching off a guest that has returned its status.
const GRACE: Duration = Duration::from_secs(10);

/// The output stream of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The result of a run.
pub(crate) struct Ended {
    /// The exit status of the command; 128 plus the signal, if a signal has ended it.
    pub(crate) status: i32,
    /// From the start of QEMU to the start of the command.
    pub(crate) boot: Duration,
    /// From the start of QEMU to each mark of the suite on the console.
    pub(crate) cases: Vec<Duration>,
    pub(crate) console: Console,
    /// The directory that the guest saw as `/results`, until this is dropped.
    pub(crate) results: PathBuf,
    _work: Workdir,
}

/// A machine about to run, or running.
pub(crate) struct Guest<'a> {
    pub(crate) machine: Machine,
    pub(crate) kernel: &'a Kernel,
    pub(crate) mode: Mode,
    pub(crate) timeout: Duration,
    pub(crate) interrupt: &'a Interrupt,
}

impl Guest<'_> {
    /// Boots, runs `job`, and passes its output to `sink` as it arrives.
    ///
    /// The files in `/results` are passed to `rescue` even if the run fails.
    pub(crate) fn run(
        &self,
        job: &Job,
        sink: &mut Sink<'_>,
        rescue: &dyn Fn(&Path) -> Result,
    ) -> Result<Ended> {
        let work = Workdir::new()?;
        let place = |name: &str| work.path().join(name);
        let (archive, shared, console) = (place("archive"), place("shared"), place("console"));
        let results = shared.join("results");
        fs::create_dir_all(&results).map_err(at(&results))?;
        fs::write(&archive, stage::archive(self.kernel, job)?).map_err(at(&archive))?;

        let files = Files { archive: &archive, shared: &shared, console: &console };
        let mut command = self.machine.command(self.kernel, self.mode, &files)?;
        let complaints = place("qemu");
        command.stderr(File::create(&complaints).map_err(at(&complaints))?);
        if self.mode != Mode::Shell {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        let begun = Instant::now();
        let mut qemu = Qemu(command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?);
        let mut watch = Watch::new(&shared, &console, begun);
        let outcome = self.wait(&mut qemu, &mut watch, sink);
        drop(qemu);
        let outcome = outcome.and_then(|exit| match watch.status()? {
            Some(status) => Ok(status),
            None => Err(no_status(&watch.console, exit, &complaints, self.machine.memory).into()),
        });
        match outcome {
            Ok(status) => {
                let boot = watch.started.unwrap_or_default();
                let Watch { console, cases, .. } = watch;
                Ok(Ended { status, boot, cases, console, results, _work: work })
            }
            Err(error) => {
                rescue(&results)?;
                Err(error)
            }
        }
    }

    /// Waits until QEMU has ended, and ends it at the timeout or if interrupted.
    fn wait(&self, qemu: &mut Qemu, watch: &mut Watch, sink: &mut Sink<'_>) -> Result<Option<ExitStatus>> {
        let mut done: Option<Instant> = None;
        loop {
            // Checked first, so that the output read afterwards is complete.
            let exit = qemu.0.try_wait()?;
            watch.read(sink)?;
            self.interrupt.check()?;
            if exit.is_some() {
                return Ok(exit);
            }
            if done.is_none() && watch.status()?.is_some() {
                done = Some(Instant::now());
            }
            if done.is_some_and(|since| since.elapsed() > GRACE) {
                return Ok(None);
            }
            if done.is_none() && self.mode != Mode::Shell && watch.begun.elapsed() > self.timeout {
                let did = if watch.started.is_some() {
                    "the command did not end"
                } else {
                    "the guest did not boot"
                };
                return Err(Trouble::Timeout(format!(
                    "{did} within {} s (--timeout)\n{}",
                    self.timeout.as_secs(),
                    watch.console.tail()
                ))
                .into());
            }
            thread::sleep(POLL);
        }
    }
}

/// Returns why a machine has ended without returning a status.
fn no_status(console: &Console, exit: Option<ExitStatus>, complaints: &Path, memory: u32) -> String {
    let tail = console.tail();
    if let Some(line) = console.out_of_memory() {
        return format!("the guest ran out of its {memory} MB of memory (--memory): {line}\n{tail}");
    }
    if let Some(line) = console.panic() {
        return format!("the guest's kernel panicked: {line}\n{tail}");
    }
    let exit = exit.map_or("was stopped".to_owned(), |exit| format!("ended with {exit}"));
    let printed = fs::read_to_string(complaints).unwrap_or_default();
    format!("the guest handed back no status; QEMU {exit} {}\n{tail}", printed.trim())
}

/// A QEMU process that does not outlive its owner.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        // Fails only for a process that has ended.
        let _ = self.0.end_at_once();
    }
}

/// The files of a machine that are read while it runs.
struct Watch {
    begun: Instant,
    /// The time until the command started.
    started: Option<Duration>,
    /// The times until each case of the suite.
    cases: Vec<Duration>,
    console: Console,
    console_file: Growing,
    stdout: Growing,
    stderr: Growing,
    status: PathBuf,
}

impl Watch {
    fn new(shared: &Path, console: &Path, begun: Instant) -> Self {
        let growing = |name: &str| Growing::new(shared.join(name));
        Self {
            begun,
            started: None,
            cases: Vec::new(),
            console: Console::default(),
            console_file: Growing::new(console.to_owned()),
            stdout: growing("stdout"),
            stderr: growing("stderr"),
            status: shared.join("status"),
        }
    }

    fn read(&mut self, sink: &mut Sink<'_>) -> Result {
        let fresh = self.console_file.fresh()?;
        self.console.append(&fresh);
        if self.started.is_none() && !fresh.is_empty() && self.console.started() {
            self.started = Some(self.begun.elapsed());
        }
        if !fresh.is_empty() {
            self.cases.resize(self.console.cases(), self.begun.elapsed());
        }
        for (file, stream) in [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)] {
            let fresh = file.fresh()?;
            if !fresh.is_empty() {
                sink(stream, &fresh)?;
            }
        }
        Ok(())
    }

    /// Returns the status from the guest, if present.
    fn status(&self) -> Result<Option<i32>> {
        match fs::read_to_string(&self.status) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&self.status)(error).into()),
            Ok(text) => Ok(Some(text.trim().parse().map_err(|_| format!("the guest's status is `{text}`"))?)),
        }
    }
}

/// A file that another process writes to, and that may not exist yet.
struct Growing {
    path: PathBuf,
    file: Option<File>,
}

impl Growing {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Returns the content added since the last call.
    fn fresh(&mut self) -> Result<Vec<u8>> {
        if self.file.is_none() {
            self.file = match File::open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                other => Some(other.map_err(at(&self.path))?),
            };
        }
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut bytes).map_err(at(&self.path))?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use xtask_support::scratch::Scratch;

    #[test]
    fn reads_growing_file() {
        let scratch = Scratch::new("growing").unwrap();
        let path = scratch.path().join("output");
        let mut growing = Growing::new(path.clone());
        assert!(growing.fresh().unwrap().is_empty());
        let mut file = File::create(path).unwrap();
        file.write_all(b"one").unwrap();
        assert_eq!(growing.fresh().unwrap(), b"one");
        file.write_all(b"two").unwrap();
        assert_eq!(growing.fresh().unwrap(), b"two");
        assert!(growing.fresh().unwrap().is_empty());
    }

    #[test]
    fn error_explains_missing_status() {
        let printed = |text: &str| {
            let mut console = Console::default();
            console.append(text.as_bytes());
            no_status(&console, None, Path::new("/nonexistent"), 64)
        };
        assert!(
            printed("[1] Kernel panic - not syncing: x\n")
                .starts_with("the guest's kernel panicked: Kernel panic")
        );
        let both = "[1] Out of memory and no killable processes\n[1] Kernel panic - not syncing: y\n";
        assert!(printed(both).starts_with("the guest ran out of its 64 MB of memory (--memory)"));
        assert!(printed("hm\n").contains("no status"));
    }
}
