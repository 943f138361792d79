//! The unit of a trace's timestamps.

use super::error::ReadError;
use super::{Buffer, Recorder, Trace};

/// Returns the unit of the kernel's trace clock of that name, unless it is ns.
pub(crate) fn counted(clock: &str) -> Option<&'static str> {
    match clock {
        "x86-tsc" => Some("cycles of the processor"),
        "ppc-tb" => Some("ticks of the time base"),
        "s390-tod" => Some("ticks of the time of day"),
        "counter" => Some("events"),
        "uptime" => Some("ticks of the kernel's timer"),
        _ => None,
    }
}

/// Clocks that count ns: those of the kernel's tracing, and those of perf.
const NANOSECONDS: [&str; 10] =
    ["", "local", "global", "perf", "mono", "mono_raw", "boot", "tai", "realtime", "tsc2nsec"];

impl Trace {
    /// Checks that the times of these buffers can be converted to ns and merged into one order.
    pub(crate) fn check_clocks<'a>(
        &self,
        buffers: impl Iterator<Item = &'a Buffer>,
    ) -> Result<(), ReadError> {
        let mut common = None;
        for buffer in buffers.filter(|buffer| !buffer.cpus.is_empty()) {
            let clock = self.clock_of(buffer);
            let wrong = |problem| {
                let (file, clock) = (self.file.clone(), clock.to_owned());
                Err(ReadError::Clock { file, clock, problem })
            };
            match counted(clock) {
                // Counts of events, or of ticks that are too coarse: no scale turns them into
                // useful times.
                Some(counted) if matches!(clock, "counter" | "uptime") => {
                    return wrong(format!("it counts {counted}"));
                }
                Some(counted) if self.scale.is_none() => {
                    return wrong(format!("it counts {counted}, and how long one takes was not recorded"));
                }
                // LTTng records the frequency of its clock.
                None if !NANOSECONDS.contains(&clock) && self.recorder() != Recorder::Lttng => {
                    return wrong(
                        "no kernel has a clock of that name, and so its unit is not known".to_owned(),
                    );
                }
                _ => {}
            }
            match common {
                Some(other) if other != clock => {
                    return wrong(format!("another buffer has times of `{}`", str::escape_debug(other)));
                }
                _ => common = Some(clock),
            }
        }
        Ok(())
    }

    /// Converts a time of a buffer to ns.
    pub(super) fn in_ns(&self, buffer: &Buffer, time: u64) -> u64 {
        match self.scale {
            // The file may contain a scale although the trace has another clock.
            Some(scale) if counted(self.clock_of(buffer)).is_some() => scale.apply(time),
            _ => time,
        }
    }

    /// Returns the clock of a buffer, or of the trace if the buffer names none.
    pub(super) fn clock_of<'a>(&'a self, buffer: &'a Buffer) -> &'a str {
        if buffer.clock.is_empty() { &self.clock } else { &buffer.clock }
    }
}
