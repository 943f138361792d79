//! Counts of messages.

use std::fmt;

use crate::transport::TransportReport;

/// Counts of the messages of a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The topics.
    pub topics: Vec<TopicReport>,
    /// The sinks.
    pub sinks: Vec<SinkReport>,
    /// The transports that have attached.
    pub transports: Vec<TransportReport>,
}

/// Counts of the messages of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicReport {
    /// The name.
    pub name: &'static str,
    /// The number of messages that the helper took.
    pub taken: u64,
    /// The number of messages lost since the bridge was started, because the ring was full.
    pub lost: u64,
}

/// Counts of the messages of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkReport {
    /// The name.
    pub name: String,
    /// The number of written messages.
    pub written: u64,
    /// The number of messages for which it had no room at the time, because peers or the disk were
    /// blocked.
    pub dropped: u64,
    /// The number of messages after it failed, including the one with which it failed.
    pub missed: u64,
    /// The error, if it failed.
    pub error: Option<String>,
}

impl SinkReport {
    pub(crate) const fn new(name: String) -> Self {
        Self { name, written: 0, dropped: 0, missed: 0, error: None }
    }
}

impl Report {
    /// Returns `true` if every message was delivered to every sink.
    ///
    /// Losses of transports do not count, since slow peers and faults of other processes cause
    /// them.
    pub fn is_complete(&self) -> bool {
        let is_whole = |sink: &SinkReport| sink.dropped == 0 && sink.error.is_none();
        self.topics.iter().all(|topic| topic.lost == 0) && self.sinks.iter().all(is_whole)
    }

    /// Returns the counts of a topic.
    pub fn topic(&self, name: &str) -> Option<&TopicReport> {
        self.topics.iter().find(|topic| topic.name == name)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for TopicReport { name, taken, lost } in &self.topics {
            writeln!(f, "{name}: {taken} messages, {lost} lost")?;
        }
        for SinkReport { name, written, dropped, missed, error } in &self.sinks {
            write!(f, "{name}: {written} written")?;
            if *dropped > 0 {
                write!(f, ", {dropped} dropped, because peers were blocked")?;
            }
            if let Some(error) = error {
                write!(f, ", {missed} missed: {error}")?;
            }
            writeln!(f)?;
        }
        for transport in &self.transports {
            writeln!(f, "transport {}: {transport}", transport.name)?;
        }
        Ok(())
    }
}
