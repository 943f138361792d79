//! Reasons for the early end of a run, and interruption.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use xtask_support::Result;

/// The interval at which the lab checks for the end of a program, and for output of the machine.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// The time limit for the cleanup of a program that was asked to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for a program: the longest, building a kernel on a slow machine, takes less.
const RUN_LIMIT: Duration = Duration::from_secs(6 * 3600);

/// An error with its own exit status, so that scripts can distinguish it from the status of the
/// command.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The time limit was reached.
    Timeout(String),
    /// A signal requested an early end.
    Interrupted,
    /// The lab worked, but the result is not as expected.
    Failed(String),
    /// The output was closed.
    Unread,
}

impl Trouble {
    /// The status of the lab's other failures.
    pub(crate) const OTHER: i32 = 125;

    /// Returns the exit status for `error`.
    pub(crate) fn status(error: &(dyn Error + 'static)) -> i32 {
        match error.downcast_ref() {
            Some(Self::Timeout(_)) => 124,
            Some(Self::Interrupted) => 130,
            Some(Self::Failed(_)) => 1,
            // As for a program that is ended by SIGPIPE.
            Some(Self::Unread) => 141,
            None => Self::OTHER,
        }
    }
}

impl Error for Trouble {}

/// Adds the subject to an error; a `Trouble` is returned unchanged, with its status.
pub(crate) fn about(subject: &str, error: Box<dyn Error>) -> Box<dyn Error> {
    if error.is::<Trouble>() { error } else { format!("{subject}: {error}").into() }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(message) | Self::Failed(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Unread => f.write_str("nobody reads the output"),
        }
    }
}

/// `true` once a signal has requested an early end. Waiting code checks it and returns, so cleanup
/// is done as usual.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Records SIGINT, SIGTERM and SIGHUP from now on, instead of their default actions.
    pub(crate) fn install() -> io::Result<Self> {
        let flag = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag.0))?;
        }
        Ok(flag)
    }

    pub(crate) fn check(&self) -> Result {
        if self.0.load(Ordering::Relaxed) { Err(Trouble::Interrupted.into()) } else { Ok(()) }
    }

    /// Runs `command` to its end, without input, and ends it if interrupted.
    pub(crate) fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        self.run_with(command, Stdio::null())
    }

    /// The same with `input`.
    pub(crate) fn run_with(&self, command: &mut Command, input: Stdio) -> Result<ExitStatus> {
        self.wait(command, input, &mut || {}, |child| child.end_at_once().map(drop))
    }

    /// The same for a program that starts others: if interrupted, it is ended together with them.
    /// `tick` is called periodically, and once at the end.
    pub(crate) fn run_all(&self, command: &mut Command, tick: &mut dyn FnMut()) -> Result<ExitStatus> {
        self.wait(command.process_group(0), Stdio::null(), tick, |child| {
            // Each signal fails only if all have ended.
            let group = Pid::from_child(child);
            let _ = kill_process_group(group, Signal::TERM);
            child.wait_within(END_TIMEOUT)?;
            let _ = kill_process_group(group, Signal::KILL);
            child.end_at_once().map(drop)
        })
    }

    fn wait(
        &self,
        command: &mut Command,
        input: Stdio,
        tick: &mut dyn FnMut(),
        end: impl Fn(&mut Child) -> io::Result<()>,
    ) -> Result<ExitStatus> {
        let spawned = command.stdin(input).spawn();
        // We must not keep the program's pipe ends open: it has to see the end of its input.
        command.stdin(Stdio::null());
        let cannot = |error| format!("cannot run {}: {error}", command.get_program().display());
        let mut child = spawned.map_err(cannot)?;
        let begun = Instant::now();
        loop {
            let ended = child.try_wait()?;
            tick();
            if let Some(status) = ended {
                self.check()?;
                return Ok(status);
            }
            let stopped = match self.check() {
                Ok(()) if begun.elapsed() > RUN_LIMIT => Err(late(command)),
                checked => checked,
            };
            if let Err(why) = stopped {
                end(&mut child)?;
                return Err(why);
            }
            thread::sleep(POLL);
        }
    }
}

fn late(command: &Command) -> Box<dyn Error> {
    let text = format!("{} did not end within {} s", command.get_program().display(), RUN_LIMIT.as_secs());
    Trouble::Timeout(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_every_failure_to_status() {
        assert_eq!(Trouble::status(&Trouble::Timeout(String::new())), 124);
        assert_eq!(Trouble::status(&Trouble::Interrupted), 130);
        assert_eq!(Trouble::status(&fmt::Error), 125);
        assert_eq!(Trouble::status(&Trouble::Failed(String::new())), 1);
        assert_eq!(Trouble::status(&Trouble::Unread), 141);
        let status = |error: Box<dyn Error>| Trouble::status(about("x", error).as_ref());
        assert_eq!(status(Trouble::Interrupted.into()), 130);
        assert_eq!(status("y".into()), 125);
    }

    #[test]
    fn ends_program_when_interrupted() {
        let interrupt = Interrupt::default();
        assert!(interrupt.run(&mut Command::new("true")).unwrap().success());
        interrupt.0.store(true, Ordering::Relaxed);
        let error = interrupt.run(Command::new("sleep").arg("60")).unwrap_err();
        assert_eq!(Trouble::status(error.as_ref()), 130);
    }

    #[test]
    fn ends_children_of_program_when_interrupted() {
        let interrupt = Interrupt::default();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 61 & echo $!; wait"]).stdout(Stdio::piped());
        let (reader, writer) = io::pipe().unwrap();
        command.stdout(writer);
        let mut lines = io::BufRead::lines(io::BufReader::new(reader));
        let mut started = None;
        let flag = Arc::clone(&interrupt.0);
        let mut tick = || {
            started.get_or_insert_with(|| lines.next());
            flag.store(true, Ordering::Relaxed);
        };
        let error = interrupt.run_all(&mut command, &mut tick).unwrap_err();
        assert_eq!(Trouble::status(error.as_ref()), 130);
        let process = started.flatten().unwrap().unwrap();
        // A zombie no longer has a command line.
        let runs = || std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|words| !words.is_empty());
        // It is killed, which may take time on a busy system.
        let asked = Instant::now();
        while runs() && asked.elapsed() < END_TIMEOUT {
            thread::sleep(POLL);
        }
        assert!(!runs(), "{process} still runs");
    }
}
