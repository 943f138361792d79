//! The final report.

use std::time::Duration;

use super::mutation::Mutation;
use super::results::{Outcome, Record};
use crate::Result;

/// The percentage of the mutations not argued equivalent that must be caught.
const REQUIRED: usize = 95;
/// The number of survivors accepted in a small sample: the draw decides which of a package's few
/// survivors it contains.
const BY_CHANCE: usize = 1;

#[derive(Default)]
pub(super) struct Report {
    caught: usize,
    timed_out: Vec<String>,
    survivors: Vec<String>,
    argued: usize,
    /// Argued equivalent, but caught: the argument is wrong.
    refuted: Vec<String>,
    not_built: Vec<String>,
    pub(super) not_tried: usize,
}

impl Report {
    pub(super) fn add(&mut self, mutation: &Mutation, argued: bool, record: Record) {
        let Mutation { function, original, mutated, .. } = mutation;
        let Record { outcome, by, said, .. } = record;
        let text = format!("{} {function}\n    {original}\n    {mutated}\n    {by} {said}", mutation.place());
        match outcome {
            Outcome::NotBuilt => self.not_built.push(text),
            Outcome::Survived if argued => self.argued += 1,
            Outcome::Survived => {
                println!("survived: {text}");
                self.survivors.push(text);
            }
            Outcome::Caught | Outcome::TimedOut if argued => self.refuted.push(text),
            Outcome::Caught => self.caught += 1,
            Outcome::TimedOut => self.timed_out.push(text),
        }
    }

    /// Returns how many mutations have been tried, in this run or earlier.
    pub(super) fn tried(&self) -> usize {
        let lists = [&self.timed_out, &self.survivors, &self.refuted, &self.not_built];
        self.caught + self.argued + lists.into_iter().map(Vec::len).sum::<usize>()
    }

    /// Prints the report. Fails if too few mutations are caught; in a sample, one survivor is not
    /// significant.
    pub(super) fn conclude(mut self, is_sample: bool, took: Duration) -> Result {
        let Self { caught, timed_out, survivors, argued, refuted, not_built, not_tried } = &mut self;
        let lists = [
            ("caught by a time limit only", &mut *timed_out),
            ("not built", &mut *not_built),
            ("argued equivalent, but caught", &mut *refuted),
            ("survived", &mut *survivors),
        ];
        for (name, list) in lists {
            if !list.is_empty() {
                list.sort();
                println!("\n=== {name}: {}\n{}", list.len(), list.join("\n"));
            }
        }
        let found = *caught + timed_out.len();
        let all = found + survivors.len();
        let hundredths = (found * 10_000).checked_div(all).unwrap_or(10_000);
        println!(
            "\nmutants: {found} of {all} caught ({}.{:02} %), {} of them by a time limit only; {argued} argued equivalent, \
             {} survivors, {} not built, {not_tried} not tried; {} s",
            hundredths / 100,
            hundredths % 100,
            timed_out.len(),
            survivors.len(),
            not_built.len(),
            took.as_secs()
        );
        if !refuted.is_empty() {
            return Err(format!(
                "{} mutations are argued equivalent, but a test detects them",
                refuted.len()
            )
            .into());
        }
        let by_chance = is_sample && survivors.len() <= BY_CHANCE;
        if by_chance || hundredths >= REQUIRED * 100 {
            return Ok(());
        }
        Err(format!(
            "{found} of {all} mutations are caught, not {REQUIRED} %: write the test that fails, or argue in tests/equivalent.toml"
        )
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find;

    fn report(outcomes: &[(Outcome, bool)]) -> Report {
        let mutation = &find::mutations("p", "src/x.rs", "fn f(a: u8, b: u8) -> bool { a < b }").unwrap()[0];
        let mut report = Report::default();
        for (outcome, argued) in outcomes {
            let record = Record {
                key: mutation.key(),
                digest: 0,
                outcome: *outcome,
                by: String::new(),
                said: String::new(),
                seconds: 0.0,
            };
            report.add(mutation, *argued, record);
        }
        report
    }

    fn conclude(outcomes: &[(Outcome, bool)], is_sample: bool) -> Result {
        report(outcomes).conclude(is_sample, Duration::ZERO)
    }

    #[test]
    fn reports_survivors() {
        let report = report(&[(Outcome::Survived, false)]);
        assert!(report.survivors[0].starts_with("crates/p/src/x.rs:1 f\n"), "{}", report.survivors[0]);
        assert!(report.survivors[0].contains("(a <= b)"));
        assert!(conclude(&[(Outcome::Survived, false)], false).is_err());
    }

    #[test]
    fn demands_nineteen_mutations_of_twenty() {
        let mut outcomes = vec![(Outcome::Caught, false); 19];
        outcomes.push((Outcome::Survived, false));
        assert!(conclude(&outcomes, false).is_ok(), "19 of 20 are 95 %");
        outcomes.push((Outcome::Survived, false));
        assert!(conclude(&outcomes, false).is_err());
        assert!(conclude(&outcomes, true).is_err(), "two survivors are no chance");
    }

    #[test]
    fn allows_a_small_sample_one_survivor() {
        let mut outcomes = vec![(Outcome::Caught, false), (Outcome::Survived, false)];
        assert!(conclude(&outcomes, false).is_err());
        assert!(conclude(&outcomes, true).is_ok());
        outcomes.push((Outcome::Survived, false));
        assert!(conclude(&outcomes, true).is_err());
    }

    #[test]
    fn counts_neither_argued_nor_unbuilt_mutations() {
        let mut outcomes =
            vec![(Outcome::Survived, true), (Outcome::NotBuilt, false), (Outcome::TimedOut, false)];
        assert!(conclude(&outcomes, false).is_ok());
        outcomes.push((Outcome::Caught, true));
        assert!(conclude(&outcomes, false).is_err(), "the argument was wrong");
    }
}
