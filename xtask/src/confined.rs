//! Running tests of code that contains a bug, with limits that keep the machine usable.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::process::{self, End, Outcome};

/// The memory limit of a test, in bytes.
const MEMORY: u64 = 4 << 30;

/// `SIGXCPU`, the signal of a program that has used up its processor time.
const OUT_OF_TIME: i32 = 24;

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The processor time of all threads, which bounds a loop even on a busy machine.
    pub(crate) processor: Duration,
    /// The time from start to end.
    pub(crate) wall: Duration,
    /// Sanitizers reserve more address space than there is memory.
    pub(crate) is_memory_bounded: bool,
}

impl Limits {
    /// Limits for a program that computes, such as a model, and for one that may also sleep.
    pub(crate) fn computing(processor: Duration) -> Self {
        Self { processor, wall: processor * 20, is_memory_bounded: true }
    }

    pub(crate) fn sleeping(processor: Duration) -> Self {
        Self { processor, wall: processor * 3, is_memory_bounded: true }
    }
}

/// Runs `executable` without permission for real-time priorities, within limits. It ends with the
/// thread that started it, and all processes it leaves behind are killed.
pub(crate) fn run(executable: &Path, limits: Limits, prepare: impl FnOnce(&mut Command)) -> Result<Outcome> {
    let mut command = Command::new("prlimit");
    // A separate signal is sent only below the hard limit.
    let seconds = limits.processor.as_secs().max(1);
    command.args(["--rtprio=0", "--core=0", &format!("--cpu={seconds}:{}", seconds + 1)]);
    if limits.is_memory_bounded {
        command.arg(format!("--as={MEMORY}"));
    }
    command.args(["setpriv", "--pdeathsig=KILL"]);
    if crate::unprivileged::is_root(&fs::read_to_string("/proc/self/status")?) {
        command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]);
    }
    prepare(command.arg(executable));
    let mut outcome = process::capture_all(&mut command, limits.wall)?;
    if outcome.end == End::Signalled(OUT_OF_TIME) {
        outcome.end = End::TimedOut(limits.processor);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limits: Limits) -> Outcome {
        run(Path::new("/bin/sh"), limits, |command| {
            command.args(["-c", script]);
        })
        .unwrap()
    }

    #[test]
    fn kills_programs_that_exceed_processor_or_wall_time() {
        let second = Duration::from_secs(1);
        // A busy machine may run the loop for a twentieth of the time or less.
        let patient = Limits { wall: Duration::from_secs(600), ..Limits::computing(second) };
        assert_eq!(shell("while :; do :; done", patient).end, End::TimedOut(second));
        let short = Limits { wall: Duration::from_millis(50), ..Limits::sleeping(second) };
        assert_eq!(shell("exec sleep 60", short).end, End::TimedOut(short.wall));
    }

    #[test]
    fn has_no_real_time_priorities() {
        let outcome = shell("exec chrt -f 1 true", Limits::sleeping(Duration::from_secs(10)));
        assert_ne!(outcome.end, End::Exited(0), "{}", outcome.stderr);
    }
}
