//! Readers of a topic, which receive from every publisher if the topic permits it.
//!
//! In DDS a reliable reader does not receive from a best-effort publisher, and a best-effort reader
//! does not recover lost messages. So a topic with the best available reliability has a reader of
//! each kind. Both receive from a reliable publisher, and the best-effort reader ignores its
//! messages.

use std::cell::RefCell;
use std::collections::HashMap;

use futures::stream::{self, Stream, StreamExt};
use punctual_bridge::{Qos, Reliability as Wanted};
use ros2_client::dds::rustdds::dds::ReadError;
use ros2_client::dds::rustdds::no_key::{DeserializedCacheChange, SimpleDataReader};
use ros2_client::dds::rustdds::policy::Reliability;
use ros2_client::dds::rustdds::{DomainParticipant, GUID, Topic};

use crate::node::text;
use crate::qos::{RELIABLE, policies};
use crate::raw::{Raw, Whole};

/// The maximum number of publishers of a topic whose reliability is cached.
const MAX_KNOWN: usize = 1024;

type Reader = SimpleDataReader<Whole, Raw>;

/// The readers of a topic.
pub(crate) struct Readers {
    participant: DomainParticipant,
    /// At least one of the two.
    reliable: Option<Reader>,
    best_effort: Option<Reader>,
}

impl Readers {
    /// Creates readers of `topic`.
    pub(crate) fn new(participant: DomainParticipant, topic: &Topic, qos: Qos) -> Result<Self, String> {
        let subscriber = participant.create_subscriber(&policies(qos, RELIABLE)).map_err(text)?;
        let reader = |other: Wanted, reliability| {
            let create = || {
                let qos = Some(policies(qos, reliability));
                subscriber.create_simple_datareader_no_key::<Whole, Raw>(topic, qos).map_err(text)
            };
            (qos.reliability != other).then(create).transpose()
        };
        let reliable = reader(Wanted::BestEffort, RELIABLE)?;
        let best_effort = reader(Wanted::Reliable, Reliability::BestEffort)?;
        Ok(Self { participant, reliable, best_effort })
    }

    /// Returns the messages of all publishers, each once, with their publishers.
    pub(crate) fn messages(&self) -> impl Stream<Item = Result<(GUID, Whole), ReadError>> {
        let known = RefCell::new(HashMap::new());
        let others = Self::parts(self.best_effort.as_ref()).filter(move |message| {
            let is_left = self.reliable.is_some()
                && message.as_ref().is_ok_and(|(writer, _)| self.is_reliable(*writer, &known));
            std::future::ready(!is_left)
        });
        stream::select(Self::parts(self.reliable.as_ref()), others)
    }

    /// Returns the messages of one reader, with their publishers.
    fn parts(reader: Option<&Reader>) -> impl Stream<Item = Result<(GUID, Whole), ReadError>> {
        let part = |message: DeserializedCacheChange<Whole>| (message.writer_guid(), message.into_value());
        let messages = reader.map(|reader| reader.as_async_stream().map(move |message| message.map(part)));
        stream::iter(messages).flatten()
    }

    /// Returns `true` if this publisher offers reliability, so the reliable reader receives from
    /// it.
    fn is_reliable(&self, writer: GUID, known: &RefCell<HashMap<GUID, bool>>) -> bool {
        let mut known = known.borrow_mut();
        if let Some(&is_reliable) = known.get(&writer) {
            return is_reliable;
        }
        let all = self.participant.discovered_writers();
        let found = all.iter().find(|found| found.publication_topic_data.key == writer);
        let announced = found.map(|found| found.publication_topic_data.reliability);
        let is_reliable = offers_reliability(announced);
        if announced.is_none() {
            return is_reliable;
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(writer, is_reliable);
        is_reliable
    }
}

/// Returns `true` if a publisher with this announcement offers reliability. One that is no longer
/// announced, and whose last messages arrive, counts as best effort: receiving a message twice is
/// better than losing it.
const fn offers_reliability(announced: Option<Option<Reliability>>) -> bool {
    matches!(announced, Some(Some(Reliability::Reliable { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_announced_reliability_leaves_messages_to_the_reliable_reader() {
        let max_blocking_time = ros2_client::dds::rustdds::Duration::ZERO;
        assert!(offers_reliability(Some(Some(Reliability::Reliable { max_blocking_time }))));
        assert!(!offers_reliability(Some(Some(Reliability::BestEffort))));
        assert!(!offers_reliability(Some(None)));
        assert!(!offers_reliability(None), "the publisher has just left");
    }
}
