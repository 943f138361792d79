//! Quality of service: the policies of DDS, and peers whose policies are incompatible.

use std::collections::HashSet;

use punctual_bridge::transport::{Direction, TopicInfo};
use punctual_bridge::{Durability, Qos, Reliability};
use punctual_transport::{Network, print};
use ros2_client::dds::rustdds::{DomainParticipant, Duration, GUID, QosPolicies, QosPolicyBuilder, policy};

use crate::node::Ros2;

/// The maximum number of incompatible peers that are remembered. Further ones are not reported.
const MAX_REPORTED: usize = 1024;

/// Returns the policies of DDS. Publishers do not wait for peers.
pub(crate) fn policies(qos: Qos, reliability: policy::Reliability) -> QosPolicies {
    let durability = match qos.durability {
        Durability::Volatile => policy::Durability::Volatile,
        Durability::TransientLocal => policy::Durability::TransientLocal,
    };
    let depth = i32::try_from(qos.depth).unwrap_or(i32::MAX);
    QosPolicyBuilder::new()
        .reliability(reliability)
        .durability(durability)
        .history(policy::History::KeepLast { depth })
        .deadline(policy::Deadline(Duration::INFINITE))
        .lifespan(policy::Lifespan { duration: Duration::INFINITE })
        .liveliness(policy::Liveliness::Automatic { lease_duration: Duration::INFINITE })
        .build()
}

/// The reliability of a publisher, which fails instead of waiting for peers, or of a subscriber,
/// which ignores that time.
pub(crate) const RELIABLE: policy::Reliability =
    policy::Reliability::Reliable { max_blocking_time: Duration::ZERO };

/// Returns the policies that a publisher offers.
pub(crate) fn offered(qos: Qos) -> QosPolicies {
    let reliability = match qos.reliability {
        Reliability::Reliable | Reliability::BestAvailable => RELIABLE,
        Reliability::BestEffort => policy::Reliability::BestEffort,
    };
    policies(qos, reliability)
}

/// Returns the least that a subscriber requests.
fn requested(qos: Qos) -> QosPolicies {
    let reliability = match qos.reliability {
        Reliability::Reliable => RELIABLE,
        Reliability::BestEffort | Reliability::BestAvailable => policy::Reliability::BestEffort,
    };
    policies(qos, reliability)
}

/// A remote publisher or subscriber.
struct Peer {
    id: GUID,
    topic: String,
    qos: QosPolicies,
}

/// The incompatible peers that have been reported.
#[derive(Default)]
pub(crate) struct Incompatible(HashSet<GUID>);

impl Incompatible {
    /// Reports peers of the topics with which no messages are exchanged because of their quality of
    /// service, each once.
    pub(crate) fn report(&mut self, participant: &DomainParticipant, topics: &[TopicInfo]) {
        let readers = participant.discovered_readers().into_iter().map(|found| Peer {
            id: found.subscription_topic_data.key(),
            topic: found.subscription_topic_data.topic_name().clone(),
            qos: found.subscription_topic_data.qos(),
        });
        let writers = participant.discovered_writers().into_iter().map(|found| Peer {
            id: found.publication_topic_data.key,
            topic: found.publication_topic_data.topic_name.clone(),
            qos: found.publication_topic_data.qos(),
        });
        let (readers, writers): (Vec<Peer>, Vec<Peer>) = (readers.collect(), writers.collect());
        for topic in topics {
            let peers = if topic.direction == Direction::Outgoing { &readers } else { &writers };
            let name = dds_name(&topic.name);
            for peer in peers.iter().filter(|peer| peer.topic == name) {
                let Some(conflict) = conflict(topic, &peer.qos) else { continue };
                if self.0.len() < MAX_REPORTED && self.0.insert(peer.id) {
                    print(Ros2::NAME, format_args!("{}: {:?}: {conflict}", topic.name, peer.id.prefix));
                }
            }
        }
    }
}

/// Returns the name of a topic of ROS in DDS.
fn dds_name(topic: &str) -> String {
    format!("rt{topic}")
}

/// Returns both profiles if they are incompatible.
fn conflict(topic: &TopicInfo, peer: &QosPolicies) -> Option<String> {
    let (own, failure, who) = match topic.direction {
        Direction::Outgoing => {
            let own = offered(topic.qos);
            let failure = own.compliance_failure_wrt(peer);
            (own, failure, "a subscriber receives nothing: it requests")
        }
        Direction::Incoming => {
            let own = requested(topic.qos);
            let failure = peer.compliance_failure_wrt(&own);
            (own, failure, "nothing is received from a publisher: it offers")
        }
    };
    let (policy, other, own) = (failure?, profile(peer), profile(&own));
    let verb = if topic.direction == Direction::Outgoing { "offers" } else { "requests" };
    Some(format!(
        "{who} {other}, and this node {verb} {own}; change the {} of one of them",
        format!("{policy:?}").to_lowercase()
    ))
}

/// Returns the policies on which compatibility depends. Discovery does not contain the depth.
fn profile(qos: &QosPolicies) -> String {
    let mut parts = vec![match qos.reliability() {
        Some(policy::Reliability::Reliable { .. }) => "reliable".to_owned(),
        _ => "best effort".to_owned(),
    }];
    parts.push(match qos.durability() {
        None | Some(policy::Durability::Volatile) => "volatile".to_owned(),
        Some(policy::Durability::TransientLocal) => "transient local".to_owned(),
        Some(other) => format!("{other:?}").to_lowercase(),
    });
    let seconds = |duration: Duration| duration.to_nanoseconds() as f64 / 1e9;
    if let Some(policy::Deadline(period)) = qos.deadline().filter(|deadline| deadline.0 != Duration::INFINITE)
    {
        parts.push(format!("deadline {} s", seconds(period)));
    }
    if let Some(liveliness) = qos.liveliness() {
        let (kind, lease) = match liveliness {
            policy::Liveliness::Automatic { lease_duration } => ("automatic", lease_duration),
            policy::Liveliness::ManualByParticipant { lease_duration } => {
                ("manual by participant", lease_duration)
            }
            policy::Liveliness::ManualByTopic { lease_duration } => ("manual by topic", lease_duration),
        };
        if lease != Duration::INFINITE || kind != "automatic" {
            parts.push(format!("liveliness {kind}, lease {} s", seconds(lease)));
        }
    }
    parts.join(", ")
}
