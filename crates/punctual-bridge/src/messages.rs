//! Messages that the rest of the world knows.

use crate::Message;

/// Three numbers: `geometry_msgs/msg/Vector3`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Message)]
#[message(name = "geometry_msgs/msg/Vector3")]
pub struct Vector3 {
    /// The first.
    pub x: f64,
    /// The second.
    pub y: f64,
    /// The third.
    pub z: f64,
}
