//! What `cargo xtask mutants` is asked for.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::mutation::Mutation;
use super::results::hash;
use crate::{Result, cargo, loom};

const USAGE: &str = "usage: cargo xtask mutants [--list] [--package NAME].. [--file SRC].. [--survivors] [--afresh]\n\
                     \x20                          [--sample N/M|commit/M|day/M] [--minutes N]";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) packages: Vec<&'static str>,
    files: Vec<String>,
    /// One of so many parts.
    pub(super) sample: Option<(u64, u64)>,
    pub(super) budget: Option<Duration>,
    pub(super) list: bool,
    /// Only those that survived when they were tried last.
    pub(super) survivors: bool,
    /// Without the results of earlier runs.
    pub(super) afresh: bool,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--list" => options.list = true,
                "--survivors" => options.survivors = true,
                "--afresh" => options.afresh = true,
                _ => {
                    let value = words.next().ok_or(USAGE)?;
                    match word {
                        "--package" => options.packages.push(loom::package(value)?),
                        "--file" => options.files.push(value.to_owned()),
                        "--sample" => options.sample = Some(sample(value)?),
                        "--minutes" => {
                            let minutes: f64 =
                                value.parse().map_err(|error| format!("--minutes {value}: {error}"))?;
                            options.budget = Some(Duration::try_from_secs_f64(minutes * 60.0)?);
                        }
                        _ => return Err(USAGE.into()),
                    }
                }
            }
        }
        if options.packages.is_empty() {
            options.packages.extend(loom::PACKAGES);
        }
        Ok(options)
    }

    /// Whether a mutation is asked for.
    pub(super) fn choose(&self, mutation: &Mutation) -> bool {
        let file = self.files.is_empty()
            || self.files.iter().any(|file| {
                let path = format!("crates/{}/{}", mutation.package, mutation.file);
                path.ends_with(&format!("/{file}"))
            });
        file && self.sample.is_none_or(|(part, parts)| hash(mutation.key().as_bytes()) % parts == part)
    }

    /// Refuses files that have no mutations: they are mistyped.
    pub(super) fn check_files(&self, all: &[Mutation]) -> Result {
        for file in &self.files {
            let only = Self { files: vec![file.clone()], ..Self::default() };
            if !all.iter().any(|mutation| only.choose(mutation)) {
                return Err(format!("--file {file}: there is nothing to mutate").into());
            }
        }
        Ok(())
    }
}

/// Which of how many parts: a number, or one that goes round with the commits or the days.
fn sample(text: &str) -> Result<(u64, u64)> {
    let of = || text.split_once('/').filter(|(_, parts)| *parts != "0").ok_or(USAGE);
    let (part, parts) = of()?;
    let parts: u64 = parts.parse().map_err(|error| format!("--sample {text}: {error}"))?;
    let part = match part {
        "commit" => {
            let mut git = Command::new("git");
            let head = git.args(["rev-parse", "HEAD"]).current_dir(cargo::root()).output();
            hash(&head.map(|output| output.stdout).unwrap_or_default()) % parts
        }
        "day" => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400 % parts,
        number => number.parse().map_err(|error| format!("--sample {text}: {error}"))?,
    };
    if part >= parts {
        return Err(format!("--sample {text}: the parts are 0/{parts} to {}/{parts}", parts - 1).into());
    }
    Ok((part, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find;

    fn parse(words: &str) -> Result<Options> {
        Options::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn takes_everything_unless_told_otherwise() {
        assert_eq!(parse("").unwrap().packages, loom::PACKAGES);
        let options = parse("--package punctual-core --sample 3/40 --minutes 1.5 --list").unwrap();
        assert_eq!(options.packages, ["punctual-core"]);
        assert_eq!((options.sample, options.budget), (Some((3, 40)), Some(Duration::from_secs(90))));
        assert!(options.list);
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for words in [
            "--sample 4/4",
            "--sample 1",
            "--sample 0/0",
            "--minutes soon",
            "--minutes -1",
            "--package x",
            "x y",
            "--file",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn the_parts_of_a_sample_are_the_whole() {
        let text = "fn f(a: u8) -> bool { a < 2 || a > 7 && !(a == 9) }";
        let found = find::mutations("punctual-core", "src/x.rs", text).unwrap();
        for mutation in &found {
            let takers = (0..3).filter(|part| parse(&format!("--sample {part}/3")).unwrap().choose(mutation));
            assert_eq!(takers.count(), 1);
        }
        assert!(parse("--file x.rs").unwrap().choose(&found[0]));
        assert!(!parse("--file y.rs").unwrap().choose(&found[0]));
        assert!(parse("--file y.rs").unwrap().check_files(&found).is_err());
    }
}
