//! What on a machine stands between a real-time thread and its deadline, worst first.
//!
//! Each check is a file in `checks`: a name, and a function that looks at a [`Scene`] and adds [`Finding`]s to a [`Report`].

mod app;
mod checks;
mod finding;
pub mod json;
pub mod measure;
pub mod text;

use std::ops::RangeInclusive;

pub use self::app::App;
pub use self::finding::{Cost, Finding, Fix, Lasts, Severity, Source, Unknown};

use crate::cpus::Cpus;
use crate::facts::Machine;
use crate::tree::Lack;
pub(crate) use finding::clean;

/// The kernel priorities of an app that does not choose: those above the kernel's interrupt threads.
const USUAL_BAND: RangeInclusive<u8> = 51..=78;

/// What is looked at.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The CPUs that real-time threads run on.
    pub cpus: Cpus,
    /// Why it is these.
    pub chosen: Chosen,
    /// The kernel priorities of these threads.
    pub band: RangeInclusive<u8>,
    /// The app that they belong to, if it is one in particular.
    pub app: Option<App>,
}

/// Why certain CPUs are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// Somebody said so.
    Asked,
    /// The app says so.
    App,
    /// They are isolated.
    Isolated,
    /// It is where an app would run.
    Usual,
}

impl<'a> Scene<'a> {
    /// The CPUs that are isolated, or else the one that an app would take.
    #[must_use]
    pub fn new(machine: &'a Machine) -> Self {
        let isolated = machine.isolated().common(&machine.topology.online);
        let (cpus, chosen) = match isolated.is_empty() {
            true => (machine.usual_cpu().into_iter().collect(), Chosen::Usual),
            false => (isolated, Chosen::Isolated),
        };
        Self { machine, cpus, chosen, band: USUAL_BAND, app: None }
    }

    /// Looks at these CPUs.
    ///
    /// # Errors
    /// Some are not there, or not online.
    pub fn on(mut self, cpus: Cpus) -> Result<Self, String> {
        let online = &self.machine.topology.online;
        let missing = cpus.without(online);
        if !missing.is_empty() {
            return Err(format!("{} not online here; online are {online}", is_or_are(&missing)));
        }
        (self.cpus, self.chosen) = (cpus, Chosen::Asked);
        Ok(self)
    }

    /// The other CPUs that are online.
    #[must_use]
    pub fn others(&self) -> Cpus {
        self.machine.topology.online.without(&self.cpus)
    }
}

fn is_or_are(cpus: &Cpus) -> String {
    format!("{} {}", cpus.named(), if cpus.len() == 1 { "is" } else { "are" })
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// What cannot be told, and why.
    pub unknown: Vec<Unknown>,
    /// The check that is looking.
    check: &'static str,
}

/// One thing to look at.
struct Check {
    name: &'static str,
    look: fn(&Scene, &mut Report),
}

/// Looks at everything.
#[must_use]
pub fn examine(scene: &Scene) -> Report {
    let mut report = Report::default();
    for check in checks::ALL {
        report.check = check.name;
        (check.look)(scene, &mut report);
    }
    // Stable, so that equals stay in the order of the checks.
    report.findings.sort_by_key(|finding| {
        (std::cmp::Reverse(finding.severity), std::cmp::Reverse(finding.cost.as_ref().map(|cost| cost.ns)))
    });
    report
}

/// The names of all checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    checks::ALL.iter().map(|check| check.name)
}

impl Report {
    /// Whether nothing is wrong, but for what is only worth knowing.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    fn add(&mut self, finding: Finding) {
        self.findings.push(finding.of(self.check));
    }

    /// Notes what cannot be told.
    fn unknown(&mut self, what: &str, why: &str) {
        self.unknown.push(Unknown { check: self.check, what: clean(what), why: clean(why) });
    }

    /// The text of a file that a check needs. If it may not be read, that is noted; if there is none, the kernel has no such
    /// thing, and there is nothing to find.
    fn read(&mut self, scene: &Scene, path: &str) -> Option<String> {
        match scene.machine.tree.read(path) {
            Ok(text) => Some(text),
            Err(Lack::Absent) => None,
            Err(Lack::Refused) => {
                self.unknown(&format!("what {path} says"), "this process may not read it; ask as root");
                None
            }
        }
    }

    /// The number in such a file.
    fn number(&mut self, scene: &Scene, path: &str) -> Option<i64> {
        self.read(scene, path)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn puts_the_worst_first() {
        let mut report = Report { check: "x", ..Report::default() };
        for (severity, ns) in
            [(Severity::Low, 9), (Severity::High, 1), (Severity::High, 5), (Severity::Note, 99)]
        {
            report.add(Finding::new(severity, "it").costs(Cost::typical(ns, "y")));
        }
        assert!(!report.is_fit());
        let machine = Machine::look(Tree::parse(""));
        let examined = examine(&Scene::new(&machine));
        assert!(examined.findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)));
    }

    #[test]
    fn refuses_cpus_that_are_not_there() {
        let machine = Machine::look(Tree::parse("").with("/sys/devices/system/cpu/online", "0-3"));
        let refused = Scene::new(&machine).on(Cpus::from([3, 4])).unwrap_err();
        assert_eq!(refused, "CPU 4 is not online here; online are 0-3");
        assert_eq!(Scene::new(&machine).on(Cpus::from([1, 2])).unwrap().others(), Cpus::from([0, 3]));
    }

    #[test]
    fn names_every_check_once() {
        let all: Vec<&str> = names().collect();
        let once: std::collections::BTreeSet<&str> = names().collect();
        assert_eq!(all.len(), once.len());
    }
}
