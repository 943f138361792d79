//! Switching, locking, events, delays and pulses: the sixth chapter of Balciunas and tables 3 and 4
//! of Cunningham.
//!
//! Reactions to a clock or an event are measured on an idle and on a loaded machine, in windows
//! that alternate between Punctual and its peers, so that other activity on the machine affects
//! both.

mod cyclictest;
mod edges;
mod events;
mod inversion;
mod partitions;
mod periods;
mod round_trip;
mod split;
mod switching;
mod timed;
pub(crate) mod timers;

use std::sync::Arc;

use crate::Stop;
use crate::load::Load;
use crate::model::Row;
use crate::options::{Plan, SuiteName};
use crate::recorder::Recorder;
use crate::rt::{Lack, SetUpFailed};
use crate::session::{Measured, Session, Step, Unit};
use crate::subject::Subject;
use crate::suites::Registration;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("latency");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Switching, locking, events, delays and pulses",
    summary: "events, timers, datagrams and delays, idle and under load",
    is_usual: true,
    has_references: true,
    steps,
};

fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = switching::steps();
    steps.extend(switching::lock_steps());
    steps.extend(periods::steps());
    for condition in [Condition::Idle, Condition::Load] {
        steps.extend(events::steps(condition));
        steps.extend(split::steps(condition));
        steps.extend(round_trip::steps(condition));
        steps.extend(inversion::steps(condition));
        steps.extend(edges::steps(condition));
        steps.extend(timed::steps(condition));
    }
    steps.extend(events::steps(Condition::Thrashed));
    steps.extend(events::isolated(plan));
    steps
}

fn row(slug: &str, operation: impl Into<String>, subject: Subject) -> Row {
    Row::new(NAME, slug, operation, subject)
}

/// The condition of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Idle,
    Load,
    /// Ordinary threads write at random to more memory than the caches hold.
    Thrashed,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Load => "load",
            Self::Thrashed => "caches thrashed",
        }
    }

    /// Establishes the condition until the result is dropped. Ends the step on failure: without its
    /// load it would measure another condition.
    fn begin(self, session: &mut Session<'_>) -> Option<Load> {
        let (what, load) = match self {
            Self::Idle => return None,
            Self::Load => (session.plan.load.as_str(), Load::start(session.plan.load)),
            Self::Thrashed => ("that thrashes the caches", Load::thrash(session.plan.cpu)),
        };
        match load {
            Ok(load) => {
                if self == Self::Load {
                    session.note(format!("Load: {what}."));
                }
                Some(load)
            }
            Err(error) => SetUpFailed(format!("the load {what} did not start: {error}")).end_step(),
        }
    }
}

/// A window of a contender.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) recorder: Arc<Recorder>,
    /// The number of samples at its end.
    pub(crate) until: usize,
    pub(crate) stop: Stop,
}

impl Window {
    /// Returns `true` if it has all of its samples, or the run is to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.recorder.len() >= self.until || self.stop.is_requested()
    }

    /// Lets other threads run until there are more than `before` samples.
    fn await_sample_after(&self, before: usize) {
        while self.recorder.len() == before && !self.stop.is_requested() {
            std::thread::yield_now();
        }
    }
}

/// Adds the samples of a window, or fewer if that fails; returns the refused settings.
pub(in crate::suites) type Measure<'a> = dyn FnMut(&Window) -> Result<Lack, String> + 'a;

/// A contender: one way to perform the operation of a group of rows.
pub(in crate::suites) struct Contender<'a> {
    row: Row,
    unit: Unit,
    measure: Box<Measure<'a>>,
}

impl<'a> Contender<'a> {
    pub(in crate::suites) fn new(
        row: Row,
        unit: Unit,
        measure: impl FnMut(&Window) -> Result<Lack, String> + 'a,
    ) -> Self {
        Self { row, unit, measure: Box::new(measure) }
    }
}

/// The number of rounds of the contenders, unless there are too few samples.
const WINDOWS: usize = 8;
/// The minimum number of samples in a window.
const MIN_SAMPLES: usize = 6;

/// Measures all contenders in turn and adds their rows.
pub(in crate::suites) fn alternate(
    session: &mut Session<'_>,
    samples: usize,
    contenders: Vec<Contender<'_>>,
) {
    let mut all: Vec<_> = contenders
        .into_iter()
        .map(|contender| (contender, Arc::new(Recorder::new(samples)), Lack::new(), None))
        .collect();
    let windows = (samples / MIN_SAMPLES).clamp(1, WINDOWS);
    for window in 1..=windows {
        for (contender, recorder, lack, failure) in &mut all {
            if session.stop.is_requested() || failure.is_some() {
                continue;
            }
            let until = samples * window / windows;
            let part = Window { recorder: Arc::clone(recorder), until, stop: session.stop.clone() };
            match (contender.measure)(&part) {
                Ok(lacks) => lack.extend(lacks.into_iter().filter(|_| window == 1)),
                Err(why) => *failure = Some(why),
            }
        }
    }
    for (contender, recorder, lack, failure) in all {
        match failure {
            Some(why) => session.add_unmeasured(contender.row, why),
            None => session.add(contender.row, &Measured { recorder, lack, unit: contender.unit }),
        }
    }
}

/// Returns the number of samples of an operation of `ns` that keeps a quick run quick.
pub(in crate::suites) fn affordable(plan: &Plan, ns: u64) -> usize {
    let samples = plan.samples as usize;
    if plan.quick { samples.min((120_000_000 / ns).max(8) as usize) } else { samples }
}
