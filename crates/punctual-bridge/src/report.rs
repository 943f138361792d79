//! What has become of the messages.

use std::fmt;

/// What has become of the messages of a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The topics.
    pub topics: Vec<TopicReport>,
    /// The sinks.
    pub sinks: Vec<SinkReport>,
}

/// What has become of the messages of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicReport {
    /// Its name.
    pub name: &'static str,
    /// How many messages the helper took.
    pub taken: u64,
    /// How many found no room since the bridge was started.
    pub lost: u64,
}

/// What a sink has been given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkReport {
    /// What it is called.
    pub name: String,
    /// How many messages it took.
    pub written: u64,
    /// How many messages it had no room for at the time, because peers stood still.
    pub dropped: u64,
    /// How many messages there were after it had failed, and the one with which it failed.
    pub missed: u64,
    /// How it failed, if it did.
    pub error: Option<String>,
}

impl SinkReport {
    pub(crate) const fn new(name: String) -> Self {
        Self { name, written: 0, dropped: 0, missed: 0, error: None }
    }
}

impl Report {
    /// Whether every message came to every sink.
    pub fn is_complete(&self) -> bool {
        let is_whole = |sink: &SinkReport| sink.dropped == 0 && sink.error.is_none();
        self.topics.iter().all(|topic| topic.lost == 0) && self.sinks.iter().all(is_whole)
    }

    /// What a topic of this name came to.
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
                write!(f, ", {dropped} dropped, as peers stood still")?;
            }
            if let Some(error) = error {
                write!(f, ", {missed} missed: {error}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
