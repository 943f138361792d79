//! The checks. A file has the checks of one subject. A new check is a constant of the type
//! [`Check`] there, and an entry in [`ALL`].

mod cgroup;
mod clock;
mod diagnostics;
mod foreign_threads;
mod interrupt_threads;
mod interrupts;
mod isolation;
mod kernel_threads;
mod memory;
mod power;
mod preemption;
mod processor;
mod reserved;
mod rights;
mod soft_interrupts;
mod stolen;
mod thermal;
mod tick;
mod watchdogs;

use punctual_report::format::{format_count, format_counted, format_nanos};

#[cfg(test)]
use super::App;
use super::finding::quoted;
use super::{Check, Cost, Finding, Lasts, Report, Scene, Severity, is_or_are, measure};
use crate::change::{Change, Setting};
use crate::cpus::Cpus;
use crate::facts::{Container, Policy};
#[cfg(test)]
use tests::{NOTHING, fixed, found, found_on, report_of, status, text};

/// Formats a length of time that the kernel states in µs.
fn micros(us: u64) -> String {
    format_nanos(us as f64 * 1e3)
}

/// All checks, in execution order: a problem that makes others irrelevant comes first.
pub(super) const ALL: &[Check] = &[
    rights::CHECK,
    cgroup::GROUP_BUDGET,
    cgroup::CGROUP,
    preemption::PREEMPT_RT,
    preemption::PREEMPTION,
    clock::TIMERS,
    stolen::STEAL,
    stolen::HARDWARE,
    reserved::THROTTLING,
    reserved::FAIR_SERVER,
    isolation::CHECK,
    tick::CHECK,
    interrupts::INTERRUPTS,
    interrupt_threads::CHECK,
    foreign_threads::CHECK,
    interrupts::IRQBALANCE,
    soft_interrupts::SOFT_INTERRUPTS,
    soft_interrupts::NETWORK,
    kernel_threads::WORKQUEUES,
    kernel_threads::KERNEL_THREADS,
    power::IDLE_STATES,
    power::FREQUENCY,
    processor::SMT,
    thermal::CHECK,
    memory::CHECK,
    watchdogs::WATCHDOGS,
    watchdogs::HUNG_TASKS,
    watchdogs::MACHINE_CHECKS,
    diagnostics::CONSOLE,
    diagnostics::DEBUGGING,
    clock::CLOCK,
    processor::MITIGATIONS,
];

#[cfg(test)]
mod tests {
    //! The common parts of the check tests: a machine of four CPUs whose last one is checked, with
    //! additional files.

    use super::super::{Outcome, text as page};
    use super::*;
    use crate::facts::Machine;
    use crate::tree::Tree;

    pub(super) const NOTHING: [&str; 0] = [];

    fn machine(files: &[(&str, &str)]) -> Machine {
        let tree = Tree::parse("").with("/sys/devices/system/cpu/online", "0-3");
        Machine::read(files.iter().fold(tree, |tree, (path, text)| tree.with(path, text)))
    }

    fn run_check(check: &Check, scene: &Scene) -> Report {
        let mut report = Report::default();
        report.run(check, scene);
        report
    }

    /// Returns the status of one check, with its value.
    pub(super) fn status(check: Check, files: &[(&str, &str)]) -> String {
        let report = report_of(check, files, None);
        let Outcome { status, value, .. } = &report.outcomes[0];
        match value {
            Some(value) => format!("{}: {value}", status.as_str()),
            None => status.as_str().to_owned(),
        }
    }

    fn severities(report: &Report) -> Vec<&'static str> {
        let found = report.findings.iter().map(|finding| finding.severity.as_str());
        found.chain(report.unknown.iter().map(|_| "unknown")).collect()
    }

    /// Returns the report of one check.
    pub(super) fn report_of(check: Check, files: &[(&str, &str)], app: Option<App>) -> Report {
        let machine = machine(files);
        let scene = Scene::new(&machine);
        let scene = match app {
            Some(app) => scene.for_app(app).expect("the app's CPUs exist"),
            None => scene,
        };
        run_check(&check, &scene)
    }

    /// Returns the severities of one check's findings.
    pub(super) fn found(check: Check, files: &[(&str, &str)]) -> Vec<&'static str> {
        severities(&report_of(check, files, None))
    }

    /// The same on other CPUs.
    pub(super) fn found_on(check: Check, cpus: &str, files: &[(&str, &str)]) -> Vec<&'static str> {
        let machine = machine(files);
        severities(&run_check(&check, &Scene::new(&machine).on(Cpus::of_list(cpus)).expect("they exist")))
    }

    /// Returns the files that the first remedy of each finding writes.
    pub(super) fn fixed(check: Check, files: &[(&str, &str)]) -> Vec<(&'static str, &'static str)> {
        let changes = report_of(check, files, None)
            .findings
            .into_iter()
            .filter_map(|finding| finding.fixes.into_iter().next());
        let changes = changes.flat_map(|fix| fix.changes).filter_map(|change| match change.setting {
            // Leaked in a test only.
            Setting::File(path) => Some((&*path.leak(), &*change.new.leak())),
            _ => None,
        });
        changes.collect()
    }

    /// Returns the printed findings of one check.
    pub(super) fn text(check: Check, files: &[(&str, &str)]) -> String {
        let machine = machine(files);
        let scene = Scene::new(&machine);
        let text = page::text(&scene, &run_check(&check, &scene), 100);
        // On one line.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
