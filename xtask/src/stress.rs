//! `cargo xtask stress`: the executor on real threads, longer and faster than an ordinary test run affords.
//!
//! The test is an ordinary one (`crates/punctual/tests/stress`); this runs it in a release build, where the
//! windows between two instructions are as narrow as they get, every kind of executor for as long as asked.

use crate::{Result, cargo, process};

/// How long the stress test is told to run each kind of executor, in seconds.
const DURATION_VARIABLE: &str = "PUNCTUAL_STRESS_SECONDS";

pub(crate) fn run(arguments: &[String]) -> Result {
    let seconds = seconds(arguments)?;
    process::succeed(
        cargo::command()
            .args(["test", "--release", "-p", "punctual", "--test", "stress", "--", "--nocapture"])
            .env(DURATION_VARIABLE, seconds.to_string()),
    )
}

fn seconds(arguments: &[String]) -> Result<u32> {
    match arguments {
        [] => Ok(20),
        [flag, value] if flag == "--seconds" => {
            value.parse().map_err(|error| format!("--seconds {value}: {error}").into())
        }
        _ => Err("usage: cargo xtask stress [--seconds N]".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<u32> {
        seconds(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn takes_a_duration_or_the_default() {
        assert_eq!(parse(&[]).unwrap(), 20);
        assert_eq!(parse(&["--seconds", "90"]).unwrap(), 90);
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        assert!(parse(&["--seconds"]).is_err());
        assert!(parse(&["--seconds", "soon"]).is_err());
        assert!(parse(&["90"]).is_err());
    }
}
