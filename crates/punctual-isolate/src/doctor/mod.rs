//! Conditions of a machine that make real-time threads miss deadlines, worst first.
//!
//! Each check is a file in `checks`: a name, and a function that examines a [`Scene`] and adds
//! [`Finding`]s to a [`Report`].

mod app;
mod checks;
mod finding;
pub mod json;
pub mod measure;
pub mod text;

use std::ops::RangeInclusive;

use serde::Serialize;

pub use self::app::App;
pub use self::finding::{Cost, Finding, Fix, Lasts, Severity, Source, Unknown};

use crate::cpus::Cpus;
use crate::facts::Machine;
use crate::tree::Lack;
pub(crate) use finding::clean;

/// The default kernel priorities of an app: those above the kernel's interrupt threads.
const USUAL_BAND: RangeInclusive<u8> = 51..=78;

/// The subject of the checks.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The CPUs of the real-time threads.
    pub cpus: Cpus,
    /// The reason for this choice.
    pub chosen: Chosen,
    /// The kernel priorities of these threads.
    pub band: RangeInclusive<u8>,
    /// The app of these threads, if known.
    pub app: Option<App>,
}

/// The reason for the choice of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Chosen {
    /// The user named them.
    Asked,
    /// The app names them.
    App,
    /// They are isolated.
    Isolated,
    /// The default CPU of an app.
    Usual,
}

impl<'a> Scene<'a> {
    /// Chooses the isolated CPUs, or the default CPU of an app.
    #[must_use]
    pub fn new(machine: &'a Machine) -> Self {
        let isolated = machine.isolated().common(&machine.topology.online);
        let (cpus, chosen) = match isolated.is_empty() {
            true => (machine.usual_cpu().into_iter().collect(), Chosen::Usual),
            false => (isolated, Chosen::Isolated),
        };
        Self { machine, cpus, chosen, band: USUAL_BAND, app: None }
    }

    /// Chooses these CPUs.
    ///
    /// # Errors
    /// Some do not exist, or are not online.
    pub fn on(mut self, cpus: Cpus) -> Result<Self, String> {
        let online = &self.machine.topology.online;
        let missing = cpus.without(online);
        if !missing.is_empty() {
            return Err(format!("{} not online; online: {online}", is_or_are(&missing)));
        }
        (self.cpus, self.chosen) = (cpus, Chosen::Asked);
        Ok(self)
    }

    /// Returns the other online CPUs.
    #[must_use]
    pub fn others(&self) -> Cpus {
        self.machine.topology.online.without(&self.cpus)
    }
}

fn is_or_are(cpus: &Cpus) -> String {
    format!("{} {}", cpus.named(), if cpus.len() == 1 { "is" } else { "are" })
}

/// The result of an examination.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The findings, worst first.
    pub findings: Vec<Finding>,
    /// The unknown properties, with reasons.
    pub unknown: Vec<Unknown>,
    /// The result of every check, in execution order.
    pub outcomes: Vec<Outcome>,
    /// The current check.
    check: &'static str,
    /// The value that the current check examines.
    value: Option<String>,
    /// The reason why the current check does not apply.
    inapplicable: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The name of the check.
    pub check: &'static str,
    /// The status.
    pub status: Status,
    /// The examined value, or the reason why the check does not apply. `None` if nothing could be
    /// read.
    pub value: Option<String>,
}

/// The status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// There is nothing to improve.
    Good,
    /// There are findings.
    Finding,
    /// A value is unknown.
    Unknown,
    /// The machine lacks the examined feature.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Status {
    /// Returns the status in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Finding => "finding",
            Self::Unknown => "unknown",
            Self::NotApplicable => "not applicable",
        }
    }
}

/// A check.
struct Check {
    name: &'static str,
    /// Conditions that it examines, as in the book.
    examines: &'static str,
    run: fn(&Scene, &mut Report),
}

/// Returns the name of each check and the conditions that it examines, in execution order.
pub fn checks() -> impl Iterator<Item = (&'static str, &'static str)> {
    checks::ALL.iter().map(|check| (check.name, check.examines))
}

/// Runs all checks.
#[must_use]
pub fn examine(scene: &Scene) -> Report {
    let mut report = Report::default();
    for check in checks::ALL {
        report.run(check, scene);
    }
    // Stable, so that equal findings stay in the order of the checks.
    report.findings.sort_by_key(|finding| {
        (std::cmp::Reverse(finding.severity), std::cmp::Reverse(finding.cost.as_ref().map(|cost| cost.ns)))
    });
    report
}

/// Returns the names of all checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    checks::ALL.iter().map(|check| check.name)
}

impl Report {
    /// Returns `true` if there are no findings except notes.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    /// Runs a check, and records its outcome.
    fn run(&mut self, check: &Check, scene: &Scene) {
        let (findings, unknown) = (self.findings.len(), self.unknown.len());
        (self.check, self.value, self.inapplicable) = (check.name, None, None);
        (check.run)(scene, self);
        let status = match () {
            () if self.findings.len() > findings => Status::Finding,
            () if self.unknown.len() > unknown => Status::Unknown,
            () if self.inapplicable.is_some() => Status::NotApplicable,
            () if self.value.is_some() => Status::Good,
            () => Status::Unknown,
        };
        let value = match status {
            Status::NotApplicable => self.inapplicable.take(),
            _ => self.value.take(),
        };
        self.outcomes.push(Outcome { check: check.name, status, value });
    }

    /// Sets the value that the current check examines.
    fn value(&mut self, value: impl AsRef<str>) {
        self.value = Some(clean(value.as_ref()));
    }

    /// Sets the reason why the current check does not apply.
    fn not_applicable(&mut self, why: &str) {
        self.inapplicable = Some(why.to_owned());
    }

    fn add(&mut self, finding: Finding) {
        self.findings.push(finding.of(self.check));
    }

    /// Records an unknown property.
    fn unknown(&mut self, what: &str, why: &str) {
        self.unknown.push(Unknown { check: self.check, what: clean(what), why: clean(why) });
    }

    /// Reads a file that a check needs. An unreadable file is recorded as unknown; a missing one
    /// means that the kernel lacks the feature, and there is no finding.
    fn read(&mut self, scene: &Scene, path: &str) -> Option<String> {
        match scene.machine.tree.read(path) {
            Ok(text) => Some(text),
            Err(Lack::Absent) => None,
            Err(Lack::Refused) => {
                self.unknown(&format!("the content of {path}"), "this process may not read it; run as root");
                None
            }
        }
    }

    /// Reads the number in such a file.
    fn number(&mut self, scene: &Scene, path: &str) -> Option<i64> {
        self.read(scene, path)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn orders_by_severity() {
        let mut report = Report { check: "x", ..Report::default() };
        for (severity, ns) in
            [(Severity::Low, 9), (Severity::High, 1), (Severity::High, 5), (Severity::Note, 99)]
        {
            report.add(Finding::new(severity, "it").costs(Cost::typical(ns, "y")));
        }
        assert!(!report.is_fit());
        let machine = Machine::read(Tree::parse(""));
        let examined = examine(&Scene::new(&machine));
        assert!(examined.findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)));
    }

    #[test]
    fn rejects_missing_cpus() {
        let machine = Machine::read(Tree::parse("").with("/sys/devices/system/cpu/online", "0-3"));
        let refused = Scene::new(&machine).on(Cpus::from([3, 4])).unwrap_err();
        assert_eq!(refused, "CPU 4 is not online; online: 0-3");
        assert_eq!(Scene::new(&machine).on(Cpus::from([1, 2])).unwrap().others(), Cpus::from([0, 3]));
    }

    #[test]
    fn names_every_check_once() {
        let all: Vec<&str> = names().collect();
        let once: std::collections::BTreeSet<&str> = names().collect();
        assert_eq!(all.len(), once.len());
    }
}
