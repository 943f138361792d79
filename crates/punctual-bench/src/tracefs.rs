//! An instance of the kernel's tracer: buffers and settings of our own, which nobody else's tracing notices.
//!
//! An instance is a directory and outlives its process. It is removed when dropped; one that a killed run has left is not
//! [locked](Owned), and the next run removes it. Where the file system of the tracer is not mounted, it is mounted for this
//! process alone, at no place that others can see.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use punctual_files::Owned;
use punctual_trace::buffer_stats;

use crate::clock::{self, Clock};
use crate::private_mount::mount_privately;

const PREFIX: &str = "punctual-hourglass-";

/// For the one CPU that is traced; 250 ticks of a second take about 60 KiB in ten seconds.
const BUFFER_KIB: &str = "8192";

/// An instance for one CPU, switched off at first.
#[derive(Debug)]
pub(crate) struct Instance {
    directory: Owned,
    cpu: usize,
    time: TraceTime,
    /// Keeps the file system mounted, if it is for this process.
    _mount: Option<OwnedFd>,
}

/// What the instance has recorded.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) text: String,
    /// Events that there was no room for.
    pub(crate) lost: u64,
    pub(crate) time: TraceTime,
}

impl Instance {
    /// For these events; those that a kernel does not have are left out.
    pub(crate) fn create(cpu: usize, clock: &Clock, events: &[&str]) -> Result<Self, String> {
        let (base, mount) = tracer()?;
        let instances = base.join("instances");
        for abandoned in Owned::abandoned(&instances, PREFIX) {
            // The kernel switches it off as it goes.
            let _ = fs::remove_dir(abandoned.path());
        }
        let directory = Owned::create(&instances, PREFIX);
        let directory = directory.map_err(|error| format!("no instance of the tracer: {error}"))?;
        let time = TraceTime::for_clock(clock);
        let instance = Self { directory, cpu, time, _mount: mount };
        instance.set_up(events).map_err(|error| format!("the tracer refused its settings: {error}"))?;
        Ok(instance)
    }

    fn set_up(&self, events: &[&str]) -> io::Result<()> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", self.time.name())?;
        self.write("tracing_cpumask", &cpu_mask(self.cpu))?;
        self.write("options/overwrite", "0")?;
        // A smaller buffer than wished for loses events, which is reported.
        let _ = self.write(&format!("per_cpu/cpu{}/buffer_size_kb", self.cpu), BUFFER_KIB);
        for event in events {
            // A kernel without it shows less.
            let _ = self.write(&format!("events/{event}/enable"), "1");
        }
        Ok(())
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.directory.path().join(file), value)
    }

    pub(crate) fn switch_on(&self) {
        // Refused, there is nothing in it, and all gaps look like the host's: `read` tells.
        let _ = self.write("tracing_on", "1");
    }

    pub(crate) fn switch_off(&self) {
        let _ = self.write("tracing_on", "0");
    }

    /// What was recorded while it was switched on.
    pub(crate) fn read(&self) -> io::Result<Trace> {
        let of_cpu = self.directory.path().join(format!("per_cpu/cpu{}", self.cpu));
        let text = String::from_utf8_lossy(&fs::read(of_cpu.join("trace"))?).into_owned();
        if text.lines().all(|line| line.starts_with('#')) {
            return Err(io::Error::other("the tracer recorded nothing"));
        }
        let stats = fs::read_to_string(of_cpu.join("stats"))?;
        Ok(Trace { text, lost: buffer_stats::lost(&stats), time: self.time })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.switch_off();
        // Left behind, the next run removes it.
        let _ = fs::remove_dir(self.directory.path());
    }
}

/// The tracer's clock, and how ticks of ours become its times.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TraceTime {
    /// It is the same counter.
    Counter { ticks_per_us: f64 },
    /// It is `CLOCK_MONOTONIC`, which reads `ns` at `tick`.
    Monotonic { tick: u64, ns: u64, clock: Clock },
}

impl TraceTime {
    fn for_clock(clock: &Clock) -> Self {
        match clock.name() {
            "TSC" => Self::Counter { ticks_per_us: clock.ticks(1e6) as f64 / 1e3 },
            _ => Self::Monotonic { tick: clock::now(), ns: clock::monotonic_ns(), clock: *clock },
        }
    }

    /// What the tracer calls it.
    fn name(&self) -> &'static str {
        match self {
            Self::Counter { .. } => "x86-tsc",
            Self::Monotonic { .. } => "mono",
        }
    }

    /// The tracer's time at a tick.
    pub(crate) fn of(&self, at: u64) -> u64 {
        match self {
            Self::Counter { .. } => at,
            Self::Monotonic { tick, ns, clock } => ns + clock.ns(at.saturating_sub(*tick)) as u64,
        }
    }

    /// So many nanoseconds in the tracer's units.
    pub(crate) fn units(&self, ns: f64) -> u64 {
        match self {
            Self::Counter { ticks_per_us } => (ns * ticks_per_us / 1e3) as u64,
            Self::Monotonic { .. } => ns as u64,
        }
    }

    /// The tracer's units in nanoseconds.
    pub(crate) fn ns(&self, units: u64, clock: &Clock) -> f64 {
        match self {
            Self::Counter { .. } => clock.ns(units),
            Self::Monotonic { .. } => units as f64,
        }
    }
}

/// Where the tracer is. Mounts it for this process if it is nowhere.
fn tracer() -> Result<(PathBuf, Option<OwnedFd>), String> {
    for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if Path::new(path).join("instances").is_dir() {
            return Ok((path.into(), None));
        }
    }
    match mount_privately("tracefs") {
        Ok((path, mount)) => Ok((path, Some(mount))),
        Err(error) => Err(format!("the kernel's tracer cannot be reached (tracefs: {error}); it takes root")),
    }
}

/// One CPU in the kernel's format for sets: hexadecimal, in groups of 32.
fn cpu_mask(cpu: usize) -> String {
    let mut mask = format!("{:x}", 1_u32 << (cpu % 32));
    for _ in 0..cpu / 32 {
        mask.push_str(",00000000");
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_cpu_masks() {
        assert_eq!(cpu_mask(0), "1");
        assert_eq!(cpu_mask(5), "20");
        assert_eq!(cpu_mask(33), "2,00000000");
    }
}
