//! The rules of a real-time system: scheduling order, priority inversion, deadlock, semaphores, and
//! registers across a preemption.
//!
//! Zhang and Timmerman state these rules, and Cunningham tests them. A verdict depends on the order
//! of events only, never on a time. Punctual's promises pass or fail; the behavior of peers in the
//! same scenario is shown.

mod deadlock;
mod inversion;
mod log;
mod registers;
mod semaphore;
mod tasks;
mod threads;

use crate::model::{Check, Verdict};
use crate::options::{Plan, SuiteName};
use crate::session::{Session, Step};
use crate::subject::Subject;
use crate::suites::Registration;
use log::Seen;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("behavior");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Rules of scheduling and locking",
    summary: "whether scheduling and locking rules hold",
    is_usual: true,
    has_references: false,
    steps,
};

fn steps(_: &Plan) -> Vec<Step> {
    let mut steps = tasks::steps();
    steps.extend(threads::steps());
    steps.extend(inversion::steps());
    steps.extend(deadlock::steps());
    steps.extend(semaphore::steps());
    steps.extend(registers::steps());
    steps
}

/// Returns the number of runs of a scenario: the number of samples, if that was requested.
fn runs(session: &Session<'_>) -> usize {
    match session.plan.samples_given {
        true => session.samples(),
        false => session.samples().min(if session.plan.quick { 8 } else { 64 }),
    }
}

/// A rule.
#[derive(Debug, Clone, Copy)]
struct Rule {
    slug: &'static str,
    text: &'static str,
    expected: &'static str,
    /// `true` if the rule is meaningless without real-time scheduling.
    needs_fifo: bool,
}

impl Rule {
    /// Returns the check of this rule for `subject`; `promised` means that the subject guarantees
    /// the rule.
    fn check(&self, session: &Session<'_>, subject: &str, slug: &str, seen: &Seen, promised: bool) -> Check {
        let mut why: Vec<String> = session.no_fifo.clone().into_iter().filter(|_| self.needs_fifo).collect();
        why.extend(seen.refused().cloned());
        let verdict = match (seen.is_always(self.expected), promised) {
            _ if !why.is_empty() => Verdict::NotMeaningful,
            (_, false) => Verdict::Observed,
            (true, true) => Verdict::Passed,
            (false, true) => Verdict::Failed,
        };
        Check {
            id: format!("behavior/{}/{slug}", self.slug),
            rule: self.text.into(),
            subject: subject.into(),
            verdict,
            expected: self.expected.into(),
            observed: seen.describe(),
            why,
        }
    }

    /// The same for a subject that also has rows.
    fn check_of(&self, session: &mut Session<'_>, subject: Subject, seen: &Seen) {
        let promised = matches!(subject, Subject::Punctual | Subject::Sync);
        let check = self.check(session, subject.name(), subject.slug(), seen, promised);
        session.check(check);
    }
}

const LOWER_WAITS: Rule = Rule {
    slug: "lower-waits",
    text: "a lower one that is created waits",
    expected: "creator begins, creator ends, lower runs",
    needs_fifo: true,
};

const EQUAL_TO_THE_TAIL: Rule = Rule {
    slug: "equal-tail",
    text: "equal ones go to the tail",
    expected: "creator begins, creator ends, first runs, second runs",
    needs_fifo: true,
};

const YIELD_LETS_THE_EQUAL_RUN: Rule = Rule {
    slug: "yield",
    text: "a yield lets the equal one run",
    expected: "creator yields, equal runs, creator continues",
    needs_fifo: true,
};

const HIGHER_AT_ONCE: Rule = Rule {
    slug: "higher-at-once",
    text: "a higher one that is created runs at once",
    expected: "creator begins, higher runs, creator ends",
    needs_fifo: true,
};

const NO_INVERSION: Rule = Rule {
    slug: "inversion",
    text: "no priority inversion: 1 holds what 3 wants, 2 wants nothing; they end by priority",
    expected: "3-2-1",
    needs_fifo: true,
};

const NO_DEADLOCK: Rule = Rule {
    slug: "deadlock",
    text: "locking in opposite orders comes to an end",
    expected: "both end",
    needs_fifo: false,
};

const BLOCKS_AT_ZERO: Rule = Rule {
    slug: "semaphore",
    text: "a semaphore blocks only at zero: P, then 3 V and 4 P",
    expected: "P blocks, V, P done, V, V, V, P done, P done, P done, P blocks, V, P done",
    needs_fifo: false,
};
