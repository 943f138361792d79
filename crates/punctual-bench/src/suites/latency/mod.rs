//! Switching, locking, events, delays and pulses: the sixth chapter of Balciunas and tables 3 and 4 of Cunningham.
//!
//! What reacts to a clock or an event is measured on an idle and on a loaded machine, in windows that alternate between
//! Punctual and what one would use instead, so that whatever the machine does meanwhile, it does to both.

mod across;
mod cyclictest;
mod delays;
mod edges;
mod events;
mod locking;
mod pulses;
mod switching;
mod timers;

use std::sync::Arc;

use super::Subject;
use crate::load::Load;
use crate::model::Row;
use crate::options::{Plan, SuiteName};
use crate::recorder::Recorder;
use crate::rt::Lack;
use crate::session::{Measured, Session, Step, Unit};

pub(crate) fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = switching::steps();
    steps.extend(locking::steps());
    for condition in [Condition::Idle, Condition::Load] {
        steps.extend(events::steps(condition));
        steps.extend(edges::steps(condition));
        steps.extend(delays::steps(plan, condition));
        steps.extend(pulses::steps(plan, condition));
    }
    steps
}

fn row(slug: &str, operation: impl Into<String>, subject: Subject) -> Row {
    Row::new(SuiteName::Latency, slug, operation, subject)
}

/// What else goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Idle,
    Load,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Load => "load",
        }
    }

    /// Makes it so until the result is dropped; says in a note if it cannot be.
    fn begin(self, session: &mut Session<'_>) -> Option<Load> {
        if self == Self::Idle {
            return None;
        }
        let kind = session.plan.load;
        match Load::start(kind) {
            Ok(load) => {
                session.note(format!("Load: {}.", kind.as_str()));
                Some(load)
            }
            Err(error) => {
                session.note(format!("The load {} did not start: {error}", kind.as_str()));
                None
            }
        }
    }
}

/// Adds samples to the recorder until it holds so many, or fewer if that cannot be; says what was lacking.
type Window<'a> = dyn FnMut(&Arc<Recorder>, usize) -> Result<Lack, String> + 'a;

/// One way to do what a group of rows is about.
struct Contender<'a> {
    row: Row,
    unit: Unit,
    window: Box<Window<'a>>,
}

impl<'a> Contender<'a> {
    fn new(
        row: Row,
        unit: Unit,
        window: impl FnMut(&Arc<Recorder>, usize) -> Result<Lack, String> + 'a,
    ) -> Self {
        Self { row, unit, window: Box::new(window) }
    }
}

/// How often the contenders take turns, unless there are too few samples for that.
const WINDOWS: usize = 8;
/// Samples in a window, at least.
const MIN_SAMPLES: usize = 6;

/// Measures all contenders in turns and adds their rows.
fn alternate(session: &mut Session<'_>, samples: usize, contenders: Vec<Contender<'_>>) {
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
            match (contender.window)(recorder, samples * window / windows) {
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

/// So many samples of something that takes `ns`, that a quick run stays one.
fn affordable(plan: &Plan, ns: u64) -> usize {
    let samples = plan.samples as usize;
    if plan.quick { samples.min((120_000_000 / ns).max(8) as usize) } else { samples }
}
