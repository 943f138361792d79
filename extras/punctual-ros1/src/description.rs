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
    use punctual_bridge::messages::{Header, STANDARD, Vector3};

    use super::*;

    #[test]
    fn sums_are_those_of_ros() {
        let table = include_str!("../../support/standard_messages.txt");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for (message, row) in STANDARD.iter().zip(rows) {
            let (name, sum) = (row.split(' ').next().unwrap(), row.rsplit(' ').next().unwrap());
            assert_eq!(message.name(), name);
            if sum != "-" {
                assert_eq!(md5sum(message), sum, "{name}");
                count += 1;
            }
        }
        assert_eq!(count, STANDARD.len() - 6);
        assert_eq!(md5sum(Header::<8>::DESCRIPTION), "2176decaecbce78abc3b96ef049fabed");
        assert_eq!(type_name(Vector3::DESCRIPTION), "geometry_msgs/Vector3");
    }
}
