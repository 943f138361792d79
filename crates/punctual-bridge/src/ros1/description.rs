//! Types of messages as ROS 1 knows them.

use md5::{Digest, Md5};

use crate::message::Description;
use crate::message::ros2msg;

/// The name: `geometry_msgs/Vector3`.
pub(super) fn type_name(description: &Description) -> String {
    description.name().replacen("/msg/", "/", 1)
}

/// The definition, which is what ROS 2 has: of numbers and messages the languages are the same.
pub(super) fn definition(description: &'static Description) -> String {
    ros2msg::ros2msg(description)
}

/// The sum by which nodes find out whether they mean the same by a name: of a line for each field, without comments, where the sum of a message
/// stands for its type.
pub(super) fn md5sum(description: &Description) -> String {
    let lines = description.fields().iter().map(|field| {
        let inner = ros2msg::inner(field.kind()).map(md5sum);
        let of = inner.unwrap_or_else(|| ros2msg::type_name(field.kind()));
        format!("{of} {}", field.name())
    });
    let lines: Vec<String> = lines.collect();
    let digest = Md5::digest(lines.join("\n").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::messages::Vector3;

    #[derive(Clone, Copy, punctual_macros::Message)]
    #[message(name = "geometry_msgs/msg/Twist")]
    struct Twist {
        linear: Vector3,
        #[message(unit = "rad/s")]
        angular: Vector3,
    }

    #[test]
    fn sums_are_those_of_ros() {
        // As `rosmsg md5` has them.
        assert_eq!(md5sum(Vector3::DESCRIPTION), "4a842b65f413084dc2b10fb484ea7f17");
        assert_eq!(md5sum(Twist::DESCRIPTION), "9f195f881246fdfa2798d1d3eebca84a");
        assert_eq!(type_name(Vector3::DESCRIPTION), "geometry_msgs/Vector3");
    }
}
