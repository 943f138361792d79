//! The domain of a node of ROS 2.

use std::env;

/// The highest domain for which there are ports.
const LAST_DOMAIN: u16 = 232;

/// The error of [`ros_domain`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ROS_DOMAIN_ID is {0:?}; it must be a number from 0 to {LAST_DOMAIN}")]
pub struct InvalidDomain(String);

/// Returns the domain in the environment variable `ROS_DOMAIN_ID`; 0 if it is unset or empty.
///
/// # Errors
/// The value is not a domain.
pub fn ros_domain() -> Result<u16, InvalidDomain> {
    let value = env::var_os("ROS_DOMAIN_ID").unwrap_or_default();
    parse(&value.to_string_lossy())
}

fn parse(value: &str) -> Result<u16, InvalidDomain> {
    if value.is_empty() {
        return Ok(0);
    }
    let domain = value.parse().ok().filter(|domain| *domain <= LAST_DOMAIN);
    domain.ok_or_else(|| InvalidDomain(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_is_that_of_ros() {
        assert_eq!([parse(""), parse("0"), parse("232")], [Ok(0), Ok(0), Ok(232)]);
        for wrong in ["233", "-1", "x", " 1"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("ROS_DOMAIN_ID is {wrong:?}; it must be a number from 0 to 232"));
        }
    }
}
