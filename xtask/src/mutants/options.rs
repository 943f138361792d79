//! The options of `cargo xtask mutants`.

use std::time::Duration;

use clap::Args;

use super::mutation::Mutation;
use crate::sample::Sample;
use crate::{Result, loom};

#[derive(Args, Debug, Default)]
pub(crate) struct Options {
    /// Package to mutate; may be repeated [default: all with protocols]
    #[arg(long = "package", value_name = "NAME", value_parser = loom::package)]
    packages: Vec<&'static str>,

    /// Only mutations of this file; may be repeated
    #[arg(long = "file", value_name = "SRC")]
    files: Vec<String>,

    /// Only part N of M; `commit/M` and `day/M` choose another part for each commit or day
    #[arg(long, value_name = "N/M")]
    pub(super) sample: Option<Sample>,

    /// Minutes after which no further mutation is tried
    #[arg(long = "minutes", value_name = "N", value_parser = minutes)]
    pub(super) budget: Option<Duration>,

    /// List the mutations instead of trying them
    #[arg(long)]
    pub(super) list: bool,

    /// Only mutations that survived the last time they were tried
    #[arg(long)]
    pub(super) survivors: bool,

    /// Ignore the results of earlier runs
    #[arg(long)]
    pub(super) afresh: bool,
}

impl Options {
    pub(super) fn packages(&self) -> &[&'static str] {
        if self.packages.is_empty() { &loom::PACKAGES } else { &self.packages }
    }

    /// Returns whether a mutation is selected.
    pub(super) fn choose(&self, mutation: &Mutation) -> bool {
        let file = self.files.is_empty()
            || self.files.iter().any(|file| {
                let path = format!("crates/{}/{}", mutation.package, mutation.file);
                path.ends_with(&format!("/{file}"))
            });
        file && self.sample.is_none_or(|sample| sample.takes(&mutation.key()))
    }

    /// Rejects files that have no mutations: their names are mistyped.
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

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| "it takes a number".to_owned())?;
    Duration::try_from_secs_f64(minutes * 60.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::mutants::find;

    fn parse(words: &str) -> Result<Options, String> {
        let command = Options::augment_args(clap::Command::new("mutants").no_binary_name(true));
        let matches = command.try_get_matches_from(words.split_whitespace());
        let options = matches.and_then(|matches| Options::from_arg_matches(&matches));
        options.map_err(|error| error.to_string())
    }

    #[test]
    fn takes_all_packages_by_default() {
        assert_eq!(parse("").unwrap().packages(), loom::PACKAGES);
        let options = parse("--package punctual-core --sample 3/40 --minutes 1.5 --list").unwrap();
        assert_eq!(options.packages(), ["punctual-core"]);
        assert_eq!((options.sample, options.budget), ("3/40".parse().ok(), Some(Duration::from_secs(90))));
        assert!(options.list);
    }

    #[test]
    fn refuses_unusable_values() {
        for words in
            ["--sample 4/4", "--sample 1", "--sample 0/0", "--minutes soon", "--minutes=-1", "--package x"]
        {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn puts_every_mutation_into_one_part_of_a_sample() {
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
