//! Counts of the messages of transports.

use std::fmt;

/// Counts of the messages of all transports that have attached under one name.
///
/// `taken` and `lost` are claims of the transport, which the app does not trust, limited to the
/// number of published messages. The other counts are the app's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportReport {
    /// The name.
    pub name: String,
    /// The number of times that a transport has attached.
    pub attached: u64,
    /// The number of messages that it has taken from outgoing topics.
    pub taken: u64,
    /// The number of messages that were overwritten before it took them.
    pub lost: u64,
    /// The number of messages that incoming topics have accepted from it.
    pub accepted: u64,
    /// The number of its messages that were malformed, refused, or released no job.
    pub rejected: u64,
    /// The number of its messages that it overwrote before the app read them, by sending too fast.
    pub incoming_lost: u64,
}

impl fmt::Display for TransportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { taken, lost, accepted, rejected, incoming_lost, .. } = self;
        write!(f, "{taken} messages taken, {lost} lost")?;
        if accepted | rejected | incoming_lost != 0 {
            write!(
                f,
                "; {accepted} received, {rejected} rejected, {incoming_lost} lost by sending too fast"
            )?;
        }
        Ok(())
    }
}
