//! `--sample N/M`: one of many parts, so that a long check is spread over commits or days.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::process::git;

/// The part, and the number of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    part: u64,
    parts: u64,
}

impl Sample {
    /// Returns whether the item with this key is in the part. Every key is in exactly one.
    pub(crate) fn takes(self, key: &str) -> bool {
        hash(key.as_bytes()) % self.parts == self.part
    }
}

/// As `N/M`.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.parts)
    }
}

/// From `N/M`, `commit/M` or `day/M`. The last two give another part with every commit or day.
impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "it takes N/M, commit/M or day/M".to_owned();
        let (part, parts) = text.split_once('/').ok_or_else(form)?;
        let parts = parts.parse::<u64>().ok().filter(|&parts| parts > 0).ok_or_else(form)?;
        let part = match part {
            "commit" => hash(git(&["rev-parse", "HEAD"]).unwrap_or_default().as_bytes()) % parts,
            "day" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
                now.as_secs() / 86_400 % parts
            }
            number => number.parse().map_err(|_| form())?,
        };
        if part >= parts {
            return Err(format!("the parts are 0/{parts} to {}/{parts}", parts - 1));
        }
        Ok(Self { part, parts })
    }
}

/// Returns the same value in every build, unlike the hash of the standard library.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigns_every_key_to_one_part() {
        for key in ["a", "b", "channel-free-relaxed"] {
            let takers = (0..3)
                .filter(|part| format!("{part}/3").parse::<Sample>().is_ok_and(|sample| sample.takes(key)));
            assert_eq!(takers.count(), 1, "{key}");
        }
    }

    #[test]
    fn derives_valid_parts_from_commit_and_day() {
        for text in ["commit/3", "day/3", "commit/1"] {
            let sample: Sample = text.parse().unwrap();
            assert!(sample.part < sample.parts, "{text}");
        }
    }

    #[test]
    fn rejects_malformed_samples() {
        for text in ["4/4", "1", "0/0", "", "a/4", "1/", "-1/4"] {
            assert!(text.parse::<Sample>().is_err(), "{text}");
        }
    }
}
