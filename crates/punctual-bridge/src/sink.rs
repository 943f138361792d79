//! Where messages go: recordings, and whatever a program has of its own.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use punctual::Instant;

use crate::message::Description;

/// Takes messages, on the helper thread of a [`Bridge`](crate::Bridge): it may allocate and block. While it does, messages wait
/// in their topics.
///
/// After an error, or a panic, it is given no more messages; what it misses is counted. Only an error of
/// [`ErrorKind::WouldBlock`](io::ErrorKind::WouldBlock) from [`write`](Self::write) says that there was no room for this one message: it is
/// counted as dropped, and the next is given.
pub trait Sink: Send {
    /// What reports call it.
    fn name(&self) -> String;

    /// Whether it wants the messages of this topic. Called before `begin`.
    fn takes(&self, channel: &Channel) -> bool {
        let _ = channel;
        true
    }

    /// Called first, on the thread that starts the bridge.
    ///
    /// # Errors
    /// Whatever keeps it from taking messages; the bridge does not start then.
    fn begin(&mut self, channels: &[Channel], clock: Clock) -> io::Result<()>;

    /// Takes a message of a topic that it wants.
    ///
    /// # Errors
    /// Whatever kept it from that.
    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()>;

    /// Passes on what it has taken; called four times a second.
    ///
    /// # Errors
    /// Whatever kept it from that.
    fn flush(&mut self) -> io::Result<()>;

    /// Called last, with the number of messages that each topic has lost.
    ///
    /// # Errors
    /// Whatever kept it from completing what it has taken.
    fn end(&mut self, lost: &[(&'static str, u64)]) -> io::Result<()>;
}

/// A topic as sinks see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// Its name.
    pub topic: &'static str,
    /// How many messages it is said to have a second.
    pub hz: Option<u32>,
    /// How many of its messages can wait.
    pub capacity: usize,
    /// What its messages are.
    pub description: &'static Description,
}

/// A message as sinks see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The index of its channel.
    pub channel: usize,
    /// When it was released, in ns since 1970, by the [`Clock`] of the bridge.
    pub time_ns: u64,
    /// Its number in its topic. There is a gap where messages were lost.
    pub sequence: u32,
    /// Its bytes: CDR with its header, as ROS 2 has them.
    pub payload: &'a [u8],
}

/// How times of jobs become times of the day.
///
/// The difference of the two clocks is taken once, when a bridge starts. So the times of one bridge never step, even where the
/// clock of the system is set meanwhile; recordings say the difference at their start and at their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    offset_ns: u64,
    is_virtual: bool,
}

impl Clock {
    /// With the present difference of `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
    pub(crate) fn system() -> Self {
        // The real one before and after the other, for the case that this thread does not run between them.
        let before = since_1970();
        let monotonic = punctual::now().as_ticks();
        let real = before + (since_1970().saturating_sub(before)) / 2;
        Self { offset_ns: real.wrapping_sub(monotonic), is_virtual: false }
    }

    /// Of virtual time, which begins at zero.
    pub(crate) const fn of_virtual_time() -> Self {
        Self { offset_ns: 0, is_virtual: true }
    }

    /// What it adds to `CLOCK_MONOTONIC`, in ns, modulo 2⁶⁴.
    pub const fn offset_ns(&self) -> u64 {
        self.offset_ns
    }

    /// What it would add if it were made now.
    pub fn offset_now_ns(&self) -> u64 {
        if self.is_virtual { 0 } else { Self::system().offset_ns }
    }

    /// The time of the day at `instant`, in ns since 1970.
    pub fn time_ns(&self, instant: Instant) -> u64 {
        instant.as_ticks().wrapping_add(self.offset_ns)
    }
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
