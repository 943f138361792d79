//! Message types of ROS 1.

use md5::{Digest, Md5};
use punctual_bridge::message::{Description, Dialect};

/// Returns the name: `geometry_msgs/Vector3`.
pub(crate) fn type_name(description: &Description) -> String {
    description.name().replacen("/msg/", "/", 1)
}

/// Returns the definition.
pub(crate) fn definition(description: &'static Description) -> String {
    Dialect::Ros1.definition(description)
}

/// Returns the sum by which nodes check that a name means the same type to both.
pub(crate) fn md5sum(description: &Description) -> String {
    let digest = Md5::digest(Dialect::Ros1.lines(description, &md5sum).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use punctual_bridge::Message;
    use punctual_bridge::messages::{DiagnosticArray, Float64MultiArray, Header, JointState, Vector3};

    use super::*;

    #[derive(Clone, Copy, Message)]
    #[message(name = "geometry_msgs/msg/Twist")]
    struct Twist {
        linear: Vector3,
        #[message(unit = "rad/s")]
        angular: Vector3,
    }

    #[test]
    fn sums_are_those_of_ros() {
        // According to `rosmsg md5`.
        assert_eq!(md5sum(Vector3::DESCRIPTION), "4a842b65f413084dc2b10fb484ea7f17");
        assert_eq!(md5sum(Twist::DESCRIPTION), "9f195f881246fdfa2798d1d3eebca84a");
        assert_eq!(md5sum(Header::<8>::DESCRIPTION), "2176decaecbce78abc3b96ef049fabed");
        assert_eq!(md5sum(JointState::<2>::DESCRIPTION), "3066dcd76a6cfaef579bd0f34173e9fd");
        assert_eq!(md5sum(Float64MultiArray::<4>::DESCRIPTION), "4b7d974086d4060e7db4613a7e6c3ba4");
        assert_eq!(md5sum(DiagnosticArray::<2, 3>::DESCRIPTION), "60810da900de1dd6ddd437c3503511da");
        assert_eq!(type_name(Vector3::DESCRIPTION), "geometry_msgs/Vector3");
    }
}
