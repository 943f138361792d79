//! The names of `rmw_zenoh_cpp`, the implementation of ROS 2 on Zenoh.
//!
//! A topic has the key `DOMAIN/TOPIC/TYPE/HASH`. A node announces itself, its publishers and its
//! subscribers by liveliness tokens, and attaches sequence number, time and publisher to each
//! message.

use punctual_bridge::transport::{Direction, TopicInfo};
use punctual_bridge::{Durability, Qos, Reliability};
use punctual_transport::type_hash;

/// The number of the node in the tokens: there is one in a process.
const NODE_ID: u64 = 0;
/// The size of the identity of a publisher, and the prefix that contains it.
const IDENTITY_BYTES: usize = 16;

/// A node as `rmw_zenoh_cpp` sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ros {
    pub(crate) domain: u16,
    pub(crate) node: String,
}

/// The names of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// The key of its messages.
    pub(crate) key: String,
    /// The token that announces the publisher or subscriber.
    pub(crate) token: String,
}

impl Ros {
    /// Returns the token that announces the node of the session `id`.
    pub(crate) fn token(&self, id: &str) -> String {
        let Self { domain, node } = self;
        format!("@ros2_lv/{domain}/{id}/{NODE_ID}/{NODE_ID}/NN/%/%/{node}")
    }

    /// Returns the names of a topic, which is the `index`-th one of the session `id`.
    ///
    /// # Errors
    /// The definition of its type is malformed.
    pub(crate) fn names(&self, id: &str, index: usize, topic: &TopicInfo) -> Result<Names, String> {
        let Self { domain, node } = self;
        let hash = type_hash(topic).map_err(|error| error.to_string())?;
        let (package, kind) = topic.type_name.split_once("/msg/").ok_or("its type has no package")?;
        let kind = format!("{package}::msg::dds_::{kind}_");
        let role = if topic.direction == Direction::Outgoing { "MP" } else { "MS" };
        let (name, qos) = (topic.name.trim_start_matches('/'), qos(topic.qos, topic.direction));
        let mangled = topic.name.replace('/', "%");
        let entity = NODE_ID + 1 + index as u64;
        Ok(Names {
            key: format!("{domain}/{name}/{kind}/{hash}"),
            token: format!(
                "@ros2_lv/{domain}/{id}/{NODE_ID}/{entity}/{role}/%/%/{node}/{mangled}/{kind}/{hash}/{qos}"
            ),
        })
    }
}

/// Returns the quality of service in a token: reliability, durability, history and depth, deadline,
/// lifespan, and liveliness. Defaults of ROS are omitted, except for the depth.
fn qos(qos: Qos, direction: Direction) -> String {
    let is_best_effort = match qos.reliability {
        Reliability::Reliable => false,
        Reliability::BestEffort => true,
        Reliability::BestAvailable => direction == Direction::Incoming,
    };
    let reliability = if is_best_effort { "2" } else { "" };
    let durability = match qos.durability {
        Durability::Volatile => "",
        Durability::TransientLocal => "1",
    };
    format!("{reliability}:{durability}:,{}:,:,:,,", qos.depth)
}

/// Returns what is attached to a message: sequence number, time in ns since 1970, and the identity
/// of its publisher, which is derived from the token.
pub(crate) fn attached(time_ns: u64, sequence: u32, token: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + 8 + 1 + IDENTITY_BYTES);
    // From 1 on, as for other publishers.
    bytes.extend((i64::from(sequence) + 1).to_le_bytes());
    bytes.extend(time_ns.to_le_bytes());
    bytes.push(IDENTITY_BYTES as u8);
    bytes.extend(identity(token).to_le_bytes());
    bytes
}

/// FNV-1a (Fowler, Noll, Vo) with 128 bits.
fn identity(token: &str) -> u128 {
    token.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use punctual_bridge::messages::Vector3;
    use punctual_bridge::transport::Attachment;
    use punctual_bridge::{Bridge, Incoming, Topic, TransportServer};

    use super::*;

    const HASH: &str = "RIHS01_cc12fe83e4c02719f1ce8070bfd14aecd40f75a96696a67a2a1f37f7dbb0765d";

    #[test]
    fn names_are_those_of_rmw_zenoh() {
        static ANGLES: Topic<Vector3, 4> = Topic::new("/left/angles").qos(Qos::SENSOR_DATA);
        const LATCHED: Qos = Qos::DEFAULT.durability(Durability::TransientLocal).depth(7);
        static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3::default()).qos(LATCHED);
        let app = format!("rmw-{}", std::process::id());
        let server = TransportServer::new(&app).subscribe(SETPOINT.subscribe().unwrap());
        let bridge = Bridge::new().topic(&ANGLES).diagnostics(false).transports(server).start().unwrap();
        let attachment = Attachment::open(&app, "test").unwrap();
        let ros = Ros { domain: 5, node: "gimbal".into() };
        assert_eq!(ros.token("1a2b"), "@ros2_lv/5/1a2b/0/0/NN/%/%/gimbal");
        let names = |index: usize| ros.names("1a2b", index, &attachment.topics()[index]).unwrap();
        let kind = "geometry_msgs::msg::dds_::Vector3_";
        let angles = Names {
            key: format!("5/left/angles/{kind}/{HASH}"),
            token: format!("@ros2_lv/5/1a2b/0/1/MP/%/%/gimbal/%left%angles/{kind}/{HASH}/2::,5:,:,:,,"),
        };
        assert_eq!(names(0), angles);
        let setpoint = Names {
            key: format!("5/setpoint/{kind}/{HASH}"),
            token: format!("@ros2_lv/5/1a2b/0/2/MS/%/%/gimbal/%setpoint/{kind}/{HASH}/:1:,7:,:,:,,"),
        };
        assert_eq!(names(1), setpoint);
        drop((attachment, bridge.finish()));
    }

    #[test]
    fn attaches_33_bytes() {
        let bytes = attached(0x0102_0304_0506_0708, 6, "token");
        assert_eq!(bytes[..17], [7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 16]);
        assert_eq!(bytes[17..], identity("token").to_le_bytes());
        assert_ne!(identity("token"), identity("other"));
        assert_eq!(identity(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    }
}
