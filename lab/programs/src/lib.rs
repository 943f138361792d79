//! Common code of the programs in `examples/`.
//!
//! `cargo xtask lab test` runs them in guests of the lab, whose devices are simulated. They also
//! run on hardware: each prints its usage when called with invalid arguments.
//!
//! ```
//! let words = ["gpiochip0".to_owned(), "17".to_owned()];
//! let (chip, line): (String, u32) = punctual_lab::two("CHIP LINE", words.into_iter()).unwrap();
//! assert_eq!((chip.as_str(), line), ("gpiochip0", 17));
//! ```

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

use punctual::{Config, Duration, Report, StartError};

mod latencies;

pub use canopen::socket::{CanFrame, CanSocket};
pub use latencies::Latencies;

/// The result of a program's `main`.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Parses a word of the command line.
///
/// # Errors
///
/// If it is missing or invalid; the message contains the usage.
pub fn word<T: FromStr>(usage: &str, words: &mut impl Iterator<Item = String>) -> Result<T> {
    let word = words.next().ok_or_else(|| format!("a word is missing; the arguments are {usage}"))?;
    word.parse().map_err(|_| format!("`{word}` does not fit; the arguments are {usage}").into())
}

/// Parses exactly two words of the command line.
///
/// # Errors
///
/// See [`word`].
pub fn two<A: FromStr, B: FromStr>(usage: &str, mut words: impl Iterator<Item = String>) -> Result<(A, B)> {
    let found = (word(usage, &mut words)?, word(usage, &mut words)?);
    end(usage, words)?;
    Ok(found)
}

/// Requires that there are no more words.
///
/// # Errors
///
/// If there is another one.
pub fn end(usage: &str, mut words: impl Iterator<Item = String>) -> Result {
    match words.next() {
        None => Ok(()),
        Some(word) => Err(format!("`{word}` is too much; the arguments are {usage}").into()),
    }
}

/// Runs an app for the number of seconds in the first word of the command line, by default 1, and
/// prints the number of its jobs.
///
/// # Errors
///
/// If the word is not a number of seconds, or the app does not start.
pub fn run_for_seconds(
    run: impl FnOnce(Config) -> std::result::Result<Report, StartError>,
) -> Result<ExitCode> {
    let seconds = env::args().nth(1).map_or(Ok(1), |seconds| seconds.parse())?;
    let report = run(Config::from_env().until(Duration::from_secs(seconds)))?;
    println!("{} after {} jobs", report.outcome, report.tasks.iter().map(|task| task.jobs).sum::<u64>());
    Ok(ExitCode::from(report.exit_code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_requirements() {
        let read = |line: &str| two::<String, u32>("CHIP LINE", line.split(' ').map(str::to_owned));
        assert_eq!(read("gpiochip0 1").unwrap(), ("gpiochip0".to_owned(), 1));
        for line in ["gpiochip0", "gpiochip0 one", "gpiochip0 1 2"] {
            assert!(read(line).unwrap_err().to_string().ends_with("the arguments are CHIP LINE"), "{line}");
        }
    }
}
