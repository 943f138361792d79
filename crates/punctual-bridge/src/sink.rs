//! Sinks: recordings, and a program's own destinations of messages.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use punctual::Instant;

use crate::message::Description;
use crate::qos::Qos;

/// A destination of messages, called on the helper thread of a [`Bridge`](crate::Bridge), or with
/// transports on a separate thread: it may allocate and block. While it does, messages are queued
/// in their topics or for this thread.
///
/// After an error or a panic, it gets no more messages, and missed ones are counted. Only an error
/// of [`ErrorKind::WouldBlock`](io::ErrorKind::WouldBlock) from [`write`](Self::write) means that
/// there was no room for this one message: it is counted as dropped, and the next one is passed.
pub trait Sink: Send {
    /// Returns the name for reports.
    fn name(&self) -> String;

    /// Returns `true` if it takes the messages of this topic. Called before `begin`.
    fn takes(&self, channel: &Channel) -> bool {
        let _ = channel;
        true
    }

    /// Called first, on the thread that starts the bridge.
    ///
    /// # Errors
    /// The reason why it cannot take messages; in that case the bridge does not start.
    fn begin(&mut self, channels: &[Channel], clock: Clock) -> io::Result<()>;

    /// Takes a message of an accepted topic.
    ///
    /// # Errors
    /// The reason for a failure.
    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()>;

    /// Flushes the messages taken so far; called four times per second.
    ///
    /// # Errors
    /// The reason for a failure.
    fn flush(&mut self) -> io::Result<()>;

    /// Called last, with the number of messages that each topic has lost.
    ///
    /// # Errors
    /// The reason why the output could not be completed.
    fn end(&mut self, lost: &[(&'static str, u64)]) -> io::Result<()>;
}

/// A topic as seen by sinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// Its name.
    pub topic: &'static str,
    /// The declared number of messages per second.
    pub hz: Option<u32>,
    /// The number of messages that can be queued.
    pub capacity: usize,
    /// The quality of service that transports offer.
    pub qos: Qos,
    /// The type of its messages.
    pub description: &'static Description,
    /// `true` if the app receives its messages: see [`Bridge::incoming`](crate::Bridge::incoming)
    /// and [`Topic::record_inputs`](crate::Topic::record_inputs).
    pub is_input: bool,
}

/// A message as seen by sinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The index of its channel.
    pub channel: usize,
    /// Its release, in ns since 1970, by the [`Clock`] of the bridge.
    pub time_ns: u64,
    /// Its release, in ns of `CLOCK_MONOTONIC` or of virtual time.
    pub monotonic_ns: u64,
    /// Its sequence number in the topic. Lost messages leave a gap.
    pub sequence: u32,
    /// Its bytes: CDR with its header, as in ROS 2.
    pub payload: &'a [u8],
}

/// Converts times of jobs to wall-clock time.
///
/// A bridge determines the difference of the two clocks when it starts, so small corrections of the
/// system clock do not move the times of messages. If the system clock is set while the bridge
/// runs, as by the first synchronization after a boot without a battery-backed clock, the bridge
/// logs the step and stamps later messages with the new time. Recordings contain the difference at
/// their start and at their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    offset_ns: u64,
    is_virtual: bool,
}

impl Clock {
    /// Returns a clock with the present difference of `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
    pub(crate) fn system() -> Self {
        // The average of readings before and after, in case this thread is preempted between them.
        let before = since_1970();
        let monotonic = punctual::now().as_ticks();
        let real = before + (since_1970().saturating_sub(before)) / 2;
        Self { offset_ns: real.wrapping_sub(monotonic), is_virtual: false }
    }

    /// Returns a clock for virtual time, which starts at this number of ns since 1970.
    pub(crate) const fn of_virtual_time(offset_ns: u64) -> Self {
        Self { offset_ns, is_virtual: true }
    }

    /// Returns a clock whose times are those of `CLOCK_MONOTONIC`, as if the system clock had been
    /// set since it was created.
    #[cfg(test)]
    pub(crate) const fn outdated() -> Self {
        Self { offset_ns: 0, is_virtual: false }
    }

    /// Adopts the present difference if the system clock was set; returns the step in ns.
    pub(crate) fn follow(&mut self) -> Option<i64> {
        let now = self.offset_now_ns();
        let step = step_ns(self.offset_ns, now)?;
        self.offset_ns = now;
        Some(step)
    }

    /// Returns the offset from `CLOCK_MONOTONIC`, in ns, modulo 2⁶⁴.
    pub const fn offset_ns(&self) -> u64 {
        self.offset_ns
    }

    /// Returns the offset that a clock created now would have.
    pub fn offset_now_ns(&self) -> u64 {
        if self.is_virtual { self.offset_ns } else { Self::system().offset_ns }
    }

    /// Returns the wall-clock time at `instant`, in ns since 1970.
    pub fn time_ns(&self, instant: Instant) -> u64 {
        instant.as_ticks().wrapping_add(self.offset_ns)
    }
}

/// Smaller changes are gradual corrections, as by NTP, which sets the clock for larger ones.
const MIN_STEP_NS: u64 = 128_000_000;

/// Returns the step of the system clock between these differences of the two clocks, in ns, if it
/// was set.
const fn step_ns(before: u64, now: u64) -> Option<i64> {
    let step = now.wrapping_sub(before).cast_signed();
    if step.unsigned_abs() >= MIN_STEP_NS { Some(step) } else { None }
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_clock_step_from_correction() {
        assert_eq!(step_ns(5, 5 + MIN_STEP_NS - 1), None);
        assert_eq!(step_ns(MIN_STEP_NS, 1), None);
        assert_eq!(step_ns(5, 5 + MIN_STEP_NS), Some(128_000_000));
        assert_eq!(step_ns(u64::MAX, 3_000_000_000), Some(3_000_000_001), "differences wrap");
        assert_eq!(step_ns(100_000_000_000_000_000, 0), Some(-100_000_000_000_000_000));
    }

    #[test]
    fn stamps_with_new_time_after_clock_step() {
        let mut clock = Clock::system();
        assert_eq!(clock.follow(), None);
        // As if the system clock had been three years behind at the start.
        let behind = 100_000_000_000_000_000;
        clock.offset_ns -= behind;
        let step = clock.follow().expect("the clock was set");
        assert!(step.abs_diff(behind.cast_signed()) < MIN_STEP_NS, "{step}");
        assert!(clock.time_ns(punctual::now()).abs_diff(since_1970()) < MIN_STEP_NS);
        assert_eq!(Clock::of_virtual_time(0).follow(), None);
    }
}
