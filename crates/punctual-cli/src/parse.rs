//! Parsers shared by several commands.

use std::str::FromStr;
use std::time::Duration;

use punctual_analysis::time::{Nanos, parse};
use punctual_isolate::cpus::Cpus;

/// Parses a time with a unit, such as `500us`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    parse(text).map(Duration::from_nanos)
}

/// Parses a time with a unit, above zero, in ns.
pub(crate) fn nonzero(text: &str) -> Result<Nanos, String> {
    match parse(text)? {
        0 => Err(format!("`{text}` is no time; write 1ns or more")),
        ns => Ok(ns),
    }
}

/// Parses a time with a unit, above zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    nonzero(text).map(Duration::from_nanos)
}

/// A deadline from release to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deadline {
    /// The task; `None` applies to every task without its own.
    pub(crate) task: Option<String>,
    pub(crate) ns: Nanos,
}

impl FromStr for Deadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (task, time) = match text.rsplit_once('=') {
            Some((task, time)) if !task.is_empty() => (Some(task.to_owned()), time),
            Some(_) => return Err(format!("`{text}` names no task; write NAME=TIME, such as control=2ms")),
            None => (None, text),
        };
        Ok(Self { task, ns: nonzero(time)? })
    }
}

impl Deadline {
    /// Checks that the command line gives each task one deadline.
    pub(crate) fn check(deadlines: &[Self]) -> Result<(), String> {
        for (at, Self { task, .. }) in deadlines.iter().enumerate() {
            if deadlines[..at].iter().any(|earlier| earlier.task == *task) {
                let whose = task.as_ref().map_or("all other tasks".into(), |task| format!("`{task}`"));
                return Err(format!("--deadline: two for {whose}; give one"));
            }
        }
        Ok(())
    }

    /// Returns the deadline of a task that `is_called` recognizes by its names, or that of every
    /// task. If two names of the command line are its own, the last one applies.
    pub(crate) fn find(deadlines: &[Self], is_called: impl Fn(&str) -> bool) -> Option<Nanos> {
        Self::named(deadlines, is_called).or_else(|| Self::of_all(deadlines))
    }

    /// Returns the deadline of a task, without that of every task.
    pub(crate) fn named(deadlines: &[Self], is_called: impl Fn(&str) -> bool) -> Option<Nanos> {
        let is_its = |deadline: &&Self| deadline.task.as_deref().is_some_and(&is_called);
        deadlines.iter().rev().find(is_its).map(|deadline| deadline.ns)
    }

    /// Returns the deadline of every task, if there is one.
    pub(crate) fn of_all(deadlines: &[Self]) -> Option<Nanos> {
        deadlines.iter().rev().find(|deadline| deadline.task.is_none()).map(|deadline| deadline.ns)
    }
}

/// Returns the CPU of a list that may contain only one.
pub(crate) fn only_cpu(cpus: &Cpus) -> Result<usize, String> {
    match (cpus.first(), cpus.len()) {
        (Some(cpu), 1) => Ok(cpu),
        _ => Err(format!("--cpus {cpus}: this runs on one CPU; give one, such as --cpus 3")),
    }
}

/// Returns the numbers of CPUs, in the type of the recorder.
pub(crate) fn numbers(cpus: &Cpus) -> Vec<u32> {
    cpus.iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_times_without_unit() {
        assert_eq!(time("2.5s"), Ok(Duration::from_millis(2_500)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        for (text, why) in [
            ("5", "has no unit"),
            ("x", "is no time"),
            ("", "is no time"),
            ("nan", "is no time"),
            ("-1s", "a negative time"),
            ("1e300s", "is no unit of time"),
            ("99999999999s", "longer than a year"),
        ] {
            assert!(time(text).unwrap_err().contains(why), "{text}: {}", time(text).unwrap_err());
        }
        assert!(duration("0ms").unwrap_err().contains("1ns or more"));
    }

    #[test]
    fn parses_deadlines_with_and_without_a_task() {
        let deadline = str::parse::<Deadline>;
        assert_eq!(deadline("500us"), Ok(Deadline { task: None, ns: 500_000 }));
        assert_eq!(deadline("a=b=2ms"), Ok(Deadline { task: Some("a=b".into()), ns: 2_000_000 }));
        for (text, part) in [
            ("=1ms", "no task"),
            ("a=0s", "1ns or more"),
            ("5", "no unit"),
            ("a=80", "no unit"),
            ("a=", "no time"),
        ] {
            let error = deadline(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn accepts_one_deadline_per_task() {
        let parsed =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Deadline>>();
        let deadlines = parsed(&["3ms", "a=2ms", "a/7=4ms"]);
        assert_eq!(Deadline::check(&deadlines), Ok(()));
        let find = |names: &[&str]| Deadline::find(&deadlines, |task| names.contains(&task));
        assert_eq!([find(&["a"]), find(&["b"])], [Some(2_000_000), Some(3_000_000)]);
        assert_eq!(find(&["a", "a/7"]), Some(4_000_000));
        let error = |texts| Deadline::check(&parsed(texts)).unwrap_err();
        assert!(error(&["a=2ms", "b=2ms", "a=2ms"]).contains("two for `a`; "));
        assert!(error(&["1ms", "a=2ms", "2ms"]).contains("two for all other tasks; "));
    }
}
