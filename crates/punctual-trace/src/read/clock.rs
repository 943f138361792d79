//! What the times of a trace count.

use super::error::ReadError;
use super::trace::{Buffer, Trace};

/// What the kernel's trace clock of that name counts, unless it is ns.
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

impl Trace {
    /// Whether the times of these buffers can be made ns, and put in one order.
    pub(super) fn check_clocks<'a>(
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
                // However long one takes, they say nothing of time, or too little.
                Some(counted) if matches!(clock, "counter" | "uptime") => {
                    return wrong(format!("it counts {counted}"));
                }
                Some(counted) if self.scale.is_none() => {
                    return wrong(format!("it counts {counted}, and how long one takes was not recorded"));
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

    /// The clock of a buffer; of one that does not say, that of the trace.
    pub(super) fn clock_of<'a>(&'a self, buffer: &'a Buffer) -> &'a str {
        if buffer.clock.is_empty() { &self.clock } else { &buffer.clock }
    }
}
