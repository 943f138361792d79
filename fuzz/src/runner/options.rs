//! Arguments of a generated program.

use crate::child::Time;
use crate::script::Script;

/// Options.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) seed: u64,
    /// Number of scripts for each app.
    pub(super) scripts: u64,
    /// Time after which no further run starts.
    pub(super) seconds: Option<u64>,
    /// Number of failures after which the program stops.
    pub(super) failures: usize,
    pub(super) app: Option<String>,
    pub(super) script: Option<Script>,
    pub(super) time: Option<Time>,
    pub(super) privileged: Option<bool>,
    /// Names of faults that scripts omit.
    pub(super) without: Vec<String>,
    pub(super) shrink: bool,
}

const USAGE: &str = "usage: apps [--seed N] [--scripts N] [--seconds N] [--failures N] [--app NAME] [--script WORDS] \
                     [--without NAME,..] [--time real|virtual] [--user root|nobody] \
                     [--as-it-is]";

impl Options {
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let mut options = Self {
            seed: 0,
            scripts: 1,
            seconds: None,
            failures: 3,
            app: None,
            script: None,
            time: None,
            privileged: None,
            without: Vec::new(),
            shrink: true,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--as-it-is" {
                options.shrink = false;
                continue;
            }
            let value = words.next().ok_or(USAGE)?;
            let number = || value.parse().map_err(|error| format!("{word} {value}: {error}"));
            match &**word {
                "--seed" => options.seed = number()?,
                "--scripts" => options.scripts = number()?,
                "--seconds" => options.seconds = Some(number()?),
                "--failures" => options.failures = number()? as usize,
                "--app" => options.app = Some(value.clone()),
                "--script" => options.script = Some(value.parse()?),
                "--without" => options.without = value.split(',').map(str::to_owned).collect(),
                "--time" => options.time = Some(value.parse()?),
                "--user" => options.privileged = Some(value == "root"),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn keeps_message_of_failure() {
        let options =
            parse("--app app_7 --time real --user nobody --script seed=1,budget=9 --scripts 20").unwrap();
        assert_eq!(options.app.as_deref(), Some("app_7"));
        assert_eq!(options.time, Some(Time::Real));
        assert_eq!(options.privileged, Some(false));
        assert_eq!(options.script.unwrap().budget, 9);
        assert_eq!(options.scripts, 20);
    }

    #[test]
    fn rejects_unknown_options() {
        for line in ["--scripts", "--scripts many", "--time sidereal", "--script no", "--minutes 1"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
