//! The environment variables of ROS 2 for discovery: honored, or rejected at the start.
//!
//! | variable | honored | rejected |
//! |---|---|---|
//! | `ROS_DOMAIN_ID` | 0 to 232 | others |
//! | `ROS_LOCALHOST_ONLY` | 0, 1 | others |
//! | `ROS_AUTOMATIC_DISCOVERY_RANGE`, without `ROS_LOCALHOST_ONLY=1` | `SUBNET`, `LOCALHOST`, `SYSTEM_DEFAULT` | `OFF`, others |
//! | `ROS_STATIC_PEERS`, without `ROS_LOCALHOST_ONLY=1` | empty | others |
//! | `RMW_IMPLEMENTATION` | those on DDS | `rmw_zenoh_cpp`, others |

use std::net::Ipv4Addr;

use ros2_client::dds::rustdds::DomainParticipantBuilder;

use crate::node::Ros2Error;

/// The implementations of ROS 2 on DDS, which interoperate.
const ON_DDS: [&str; 5] = [
    "rmw_fastrtps_cpp",
    "rmw_fastrtps_dynamic_cpp",
    "rmw_cyclonedds_cpp",
    "rmw_connextdds",
    "rmw_gurumdds_cpp",
];

/// The scope of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Discovery {
    pub(crate) domain: u16,
    /// Only on this machine.
    is_local: bool,
}

impl Discovery {
    /// Reads the variables other than that of the domain, each by `get`. An empty one counts as
    /// unset.
    pub(crate) fn new(domain: u16, get: impl Fn(&str) -> Option<String>) -> Result<Self, Ros2Error> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let rejected = |variable, value, advice| Err(Ros2Error::Environment { variable, value, advice });
        let middleware = "RMW_IMPLEMENTATION";
        if let Some(value) = get(middleware).filter(|value| !ON_DDS.contains(&value.as_str())) {
            return rejected(middleware, value, "this node is on DDS; choose one such as rmw_cyclonedds_cpp");
        }
        let only = "ROS_LOCALHOST_ONLY";
        match get(only).as_deref() {
            Some("1") => return Ok(Self { domain, is_local: true }),
            None | Some("0") => {}
            Some(value) => return rejected(only, value.to_owned(), "set it to 1 or 0"),
        }
        let peers = "ROS_STATIC_PEERS";
        if let Some(value) = get(peers) {
            return rejected(peers, value, "this node finds others by multicast only; unset it");
        }
        let range = "ROS_AUTOMATIC_DISCOVERY_RANGE";
        match get(range).as_deref() {
            None | Some("SUBNET" | "SYSTEM_DEFAULT") => Ok(Self { domain, is_local: false }),
            Some("LOCALHOST") => Ok(Self { domain, is_local: true }),
            Some(value) => rejected(range, value.to_owned(), "set it to SUBNET or LOCALHOST"),
        }
    }

    /// Returns the settings of a participant. A local one announces itself and its endpoints on
    /// loopback only.
    pub(crate) fn participant(self) -> DomainParticipantBuilder {
        let builder = DomainParticipantBuilder::new(self.domain);
        if self.is_local { builder.with_only_networks([Ipv4Addr::LOCALHOST]) } else { builder }
    }

    /// Returns `true` if a participant announces itself at this address of the machine.
    pub(crate) fn uses(self, address: Ipv4Addr) -> bool {
        !self.is_local || address == Ipv4Addr::LOCALHOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Discovery, String> {
        let get =
            |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        Discovery::new(7, get).map_err(|error| error.to_string())
    }

    #[test]
    fn honors_range() {
        let subnet = Ok(Discovery { domain: 7, is_local: false });
        let local = Ok(Discovery { domain: 7, is_local: true });
        assert_eq!(read(&[]), subnet);
        assert_eq!(read(&[("ROS_STATIC_PEERS", ""), ("ROS_LOCALHOST_ONLY", "0")]), subnet);
        assert_eq!(read(&[("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp")]), subnet);
        assert_eq!(read(&[("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")]), subnet);
        assert_eq!(read(&[("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")]), local);
        // It takes precedence, as in rcl.
        assert_eq!(read(&[("ROS_LOCALHOST_ONLY", "1"), ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF")]), local);
    }

    #[test]
    fn local_node_uses_only_loopback() {
        let other = Ipv4Addr::new(10, 0, 0, 2);
        let uses = |is_local, address| Discovery { domain: 0, is_local }.uses(address);
        assert!(uses(false, other) && uses(false, Ipv4Addr::LOCALHOST));
        assert!(!uses(true, other) && uses(true, Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn rejects_unsupported_settings() {
        for (variable, value) in [
            ("ROS_LOCALHOST_ONLY", "true"),
            ("ROS_STATIC_PEERS", "192.168.0.7"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "subnet"),
            ("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"),
        ] {
            let error = read(&[(variable, value)]).unwrap_err();
            assert!(error.contains(&format!("{variable} is {value:?}")), "{error}");
        }
    }
}
