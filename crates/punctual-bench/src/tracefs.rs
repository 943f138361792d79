//! An instance of the kernel's tracer: separate buffers and settings, independent of other users of
//! the tracer.
//!
//! An instance is a directory and outlives its process. It is removed on drop; one left by a killed
//! run is not [locked](Owned), and the next run removes it. If the tracer's file system is not
//! mounted, it is mounted for this process only, without a mount point.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use punctual_files::Owned;
use punctual_trace::buffer_stats;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::clock::{self, Clock};

const PREFIX: &str = "punctual-hourglass-";

/// For the traced CPU; 250 ticks per second take about 60 KiB in ten seconds.
const BUFFER_KIB: &str = "8192";

/// An instance for one CPU, initially off.
#[derive(Debug)]
pub(crate) struct Instance {
    directory: Owned,
    cpu: usize,
    time: TraceTime,
    /// Keeps the private mount of the file system.
    _mount: Option<OwnedFd>,
}

/// The recorded trace.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) text: String,
    /// The number of events lost because the buffer was full.
    pub(crate) lost: u64,
    pub(crate) time: TraceTime,
}

impl Instance {
    /// Creates an instance for these events; unsupported events are skipped.
    pub(crate) fn create(cpu: usize, clock: &Clock, events: &[&str]) -> Result<Self, String> {
        let (base, mount) = tracer()?;
        let instances = base.join("instances");
        for abandoned in Owned::abandoned(&instances, PREFIX) {
            // The kernel switches it off when it is removed.
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
        // A smaller buffer than requested loses events, which is reported.
        let _ = self.write(&format!("per_cpu/cpu{}/buffer_size_kb", self.cpu), BUFFER_KIB);
        for event in events {
            // A kernel without the event shows less.
            let _ = self.write(&format!("events/{event}/enable"), "1");
        }
        Ok(())
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.directory.path().join(file), value)
    }

    pub(crate) fn switch_on(&self) {
        // If refused, the trace is empty, and all gaps look like the host's: `read` reports it.
        let _ = self.write("tracing_on", "1");
    }

    pub(crate) fn switch_off(&self) {
        let _ = self.write("tracing_on", "0");
    }

    /// Returns the events recorded while it was on.
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
        // If it remains, the next run removes it.
        let _ = fs::remove_dir(self.directory.path());
    }
}

/// The tracer's clock, and the conversion of our ticks to its times.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TraceTime {
    /// The same counter.
    Counter { ticks_per_us: f64 },
    /// `CLOCK_MONOTONIC`, which reads `ns` at `tick`.
    Monotonic { tick: u64, ns: u64, clock: Clock },
}

impl TraceTime {
    fn for_clock(clock: &Clock) -> Self {
        match clock.name() {
            "TSC" => Self::Counter { ticks_per_us: clock.ticks(1e6) as f64 / 1e3 },
            _ => Self::Monotonic { tick: clock::now(), ns: clock::monotonic_ns(), clock: *clock },
        }
    }

    /// Returns the tracer's name for the clock.
    fn name(&self) -> &'static str {
        match self {
            Self::Counter { .. } => "x86-tsc",
            Self::Monotonic { .. } => "mono",
        }
    }

    /// Converts a tick to the tracer's time.
    pub(crate) fn of(&self, at: u64) -> u64 {
        match self {
            Self::Counter { .. } => at,
            Self::Monotonic { tick, ns, clock } => ns + clock.ns(at.saturating_sub(*tick)) as u64,
        }
    }

    /// Converts nanoseconds to the tracer's units.
    pub(crate) fn units(&self, ns: f64) -> u64 {
        match self {
            Self::Counter { ticks_per_us } => (ns * ticks_per_us / 1e3) as u64,
            Self::Monotonic { .. } => ns as u64,
        }
    }

    /// Converts the tracer's units to nanoseconds.
    pub(crate) fn ns(&self, units: u64, clock: &Clock) -> f64 {
        match self {
            Self::Counter { .. } => clock.ns(units),
            Self::Monotonic { .. } => units as f64,
        }
    }
}

/// Returns the tracer's directory. Mounts it for this process if it is not mounted.
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

/// Formats one CPU in the kernel's format for sets: hexadecimal, in groups of 32.
fn cpu_mask(cpu: usize) -> String {
    let mut mask = format!("{:x}", 1_u32 << (cpu % 32));
    for _ in 0..cpu / 32 {
        mask.push_str(",00000000");
    }
    mask
}

/// Mounts a kernel file system without a mount point, for this process only, until the descriptor
/// is closed.
///
/// Returns the path by which this process accesses it.
pub(crate) fn mount_privately(kind: &str) -> rustix::io::Result<(PathBuf, OwnedFd)> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok((format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), mount))
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
