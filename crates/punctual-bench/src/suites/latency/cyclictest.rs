//! The program cyclictest as one more contender, where it is installed.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Stop;
use crate::load::installed;
use crate::model::Row;
use crate::recorder::Recorder;
use crate::rt::{self, Lack};

/// How long a machine that is busy, or emulated, takes to start it and to end it.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// cyclictest, set up like the contenders beside it.
#[derive(Debug)]
pub(super) struct Cyclictest {
    cpu: usize,
    interval_ns: u64,
}

/// The row for it, made from that of a contender.
pub(super) fn row(row: Row) -> Row {
    Row { id: row.id.replace("/posix", "/cyclictest"), subject: "cyclictest".into(), ..row }
}

impl Cyclictest {
    /// Why there is none, if there is none.
    pub(super) fn new(cpu: usize, interval_ns: u64, fifo: bool) -> Result<Self, String> {
        match (installed("cyclictest"), fifo) {
            (false, _) => Err("cyclictest is not installed (package rt-tests)".into()),
            (true, false) => Err("cyclictest does not run without real-time scheduling".into()),
            (true, true) => Ok(Self { cpu, interval_ns }),
        }
    }

    /// Lets it take as many samples as are missing, to whole microseconds as it counts.
    pub(super) fn window(&self, recorder: &Arc<Recorder>, until: usize, stop: &Stop) -> Result<Lack, String> {
        let loops = until.saturating_sub(recorder.len());
        if loops == 0 {
            return Ok(Lack::new());
        }
        let mut command = Command::new("cyclictest");
        command.args(["--quiet", "--mlockall", "--threads=1", "--policy=fifo"]);
        command.arg(format!("--priority={}", rt::PRIORITY));
        command.arg(format!("--affinity={}", self.cpu));
        command.arg(format!("--interval={}", self.interval_ns / 1000));
        command.arg(format!("--loops={loops}"));
        // Latencies beyond this many µs are counted, and listed singly as the maximum.
        command.arg("--histogram=100000");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        // SAFETY: between fork and exec this makes one system call that takes no pointers.
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
        let patience = Duration::from_nanos(self.interval_ns) * loops as u32 * 4 + STARTS_WITHIN;
        let begun = Instant::now();
        let ended = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break status.success(),
                None if stop.is_requested() || begun.elapsed() > patience => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break false;
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let text = reader.join().map_err(|_| "cyclictest could not be read")?.map_err(failed)?;
        if !ended && !stop.is_requested() {
            return Err("cyclictest failed".into());
        }
        for (us, count) in histogram(&text) {
            for _ in 0..count {
                recorder.push(us * 1000);
            }
        }
        Ok(Lack::new())
    }
}

/// Microseconds and how often each occurred, of what `--histogram` prints.
fn histogram(text: &str) -> Vec<(u64, u64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut counts: Vec<(u64, u64)> = lines
        .filter_map(|line| {
            let (us, count) = line.split_once(char::is_whitespace)?;
            Some((us.parse().ok()?, count.trim().parse().ok()?))
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    let number = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    // What is beyond the histogram is at most the maximum, and one of it is.
    if let (Some(overflows @ 1..), Some(max)) = (number("# Histogram Overflows:"), number("# Max Latencies:"))
    {
        counts.push((max, overflows));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_cyclictest_output() {
        let text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\n000005 000012\n000031\t000002\n\
                    # Min Latencies: 00005\n# Avg Latencies: 00008\n# Max Latencies: 200123\n\
                    # Histogram Overflows: 00001\n";
        assert_eq!(histogram(text), [(5, 12), (31, 2), (200_123, 1)]);
        assert!(histogram("").is_empty());
    }
}
