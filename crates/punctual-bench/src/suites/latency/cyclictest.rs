//! The program cyclictest as another contender, if it is installed.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand};

use super::Window;
use crate::load::installed;
use crate::model::Row;
use crate::rt::{self, Lack};

/// The time limit for starting and ending it on a busy or emulated machine.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// cyclictest with the same parameters as the other contenders.
#[derive(Debug)]
pub(super) struct Cyclictest {
    cpu: usize,
    interval_ns: u64,
}

/// Returns its row, derived from that of a contender.
pub(super) fn row(row: Row) -> Row {
    Row { id: row.id.replace("/posix", "/cyclictest"), subject: "cyclictest".into(), ..row }
}

impl Cyclictest {
    /// Returns the reason if it cannot run.
    pub(super) fn new(cpu: usize, interval_ns: u64, fifo: bool) -> Result<Self, String> {
        match (installed("cyclictest"), fifo) {
            (false, _) => Err("cyclictest is not installed (package rt-tests)".into()),
            (true, false) => Err("cyclictest does not run without real-time scheduling".into()),
            (true, true) => Ok(Self { cpu, interval_ns }),
        }
    }

    /// Takes the missing number of samples, which cyclictest lists in nanoseconds.
    pub(super) fn measure(&self, window: &Window) -> Result<Lack, String> {
        let loops = window.until.saturating_sub(window.recorder.len());
        if loops == 0 {
            return Ok(Lack::new());
        }
        let mut command = Command::new("cyclictest");
        command.args(["--nsecs", "--verbose", "--mlockall", "--threads=1", "--policy=fifo"]);
        command.arg(format!("--priority={}", rt::PRIORITY));
        command.arg(format!("--affinity={}", self.cpu));
        command.arg(format!("--interval={}", self.interval_ns / 1000));
        command.arg(format!("--loops={loops}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        command.default_signals();
        // SAFETY: between fork and exec the closure makes one system call without pointers.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let failed = |error: std::io::Error| format!("cyclictest: {error}");
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().expect("it was piped");
        let reader = std::thread::spawn(move || std::io::read_to_string(output));
        let timeout = Duration::from_nanos(self.interval_ns) * loops as u32 * 4 + STARTS_WITHIN;
        let begun = Instant::now();
        let ended = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break status.success(),
                None if window.stop.is_requested() || begun.elapsed() > timeout => {
                    let _ = child.end_at_once();
                    break false;
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let text = reader.join().map_err(|_| "cyclictest could not be read")?.map_err(failed)?;
        if !ended && !window.stop.is_requested() {
            return Err("cyclictest failed".into());
        }
        for ns in latencies(&text) {
            window.recorder.push(ns);
        }
        Ok(Lack::new())
    }
}

/// Returns the latencies that `--verbose` lists: `thread: cycle: nanoseconds`.
fn latencies(text: &str) -> impl Iterator<Item = u64> {
    text.lines().filter_map(|line| {
        let numbers: Option<Vec<u64>> = line.split(':').map(|number| number.trim().parse().ok()).collect();
        let [_, _, ns] = numbers?[..] else { return None };
        Some(ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_cyclictest_output() {
        let text = "Max CPUs = 2\n# /dev/cpu_dma_latency set to 0us\nThread 0 Interval: 1000\n       0:       0:   20649\n\
                    \x20      0:       1: 1204123\n";
        assert_eq!(latencies(text).collect::<Vec<_>>(), [20_649, 1_204_123]);
        assert_eq!(latencies("1: 2\n1: 2: 3: 4\n").count(), 0);
    }
}
