//! Latency for an unlimited time, in constant memory: a job spawned for an instant and a thread
//! that sleeps until one, in turns, under load. All samples are recorded in a histogram.

use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_report::format::format_nanos;

use super::latency::timers::{nanosleep, spawn_at};
use super::latency::{Measure, Window};
use crate::load::Load;
use crate::machine::read;
use crate::model::{Quantity, Row};
use crate::options::{Plan, SuiteName};
use crate::recorder::Recorder;
use crate::rt::Lack;
use crate::session::{Session, Step};
use crate::stats::Statistics;
use crate::subject::Subject;
use crate::suites::Registration;

const PERIOD_NS: u64 = 1_000_000;
/// The number of samples in a turn.
const SAMPLES_PER_ROUND: usize = 1000;
/// A load has a time limit; it is restarted before that.
const LOAD_FOR: Duration = Duration::from_secs(300);

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("endurance");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Latency for a long time",
    summary: "latency for an hour, or --duration, in constant memory; not among all",
    is_usual: false,
    has_references: true,
    steps,
};

fn steps(plan: &Plan) -> Vec<Step> {
    let length = format_nanos(plan.endurance.as_nanos() as f64);
    vec![Step::new(format!("endurance, {length}"), endure)]
}

fn endure(session: &mut Session<'_>) {
    let row = |subject| Row::new(NAME, "instant", "An instant, every millisecond", subject).under("load");
    let (cpu, stop, kind) = (session.plan.cpu, session.stop, session.plan.load);
    let end = Instant::now() + session.plan.endurance;
    let turn = session.samples().min(SAMPLES_PER_ROUND);
    let mut contenders: [(Row, Box<Measure<'_>>, Statistics, Lack); 2] = [
        (row(Subject::Punctual), Box::new(spawn_at(PERIOD_NS, 0, cpu)), Statistics::new(), Lack::new()),
        (row(Subject::Posix), Box::new(nanosleep(PERIOD_NS, 0, cpu)), Statistics::new(), Lack::new()),
    ];
    let mut memory_kib = None;
    'run: while Instant::now() < end && !stop.is_requested() {
        let until = Instant::now() + LOAD_FOR;
        let _load = match Load::start(kind) {
            Ok(load) => load,
            Err(error) => {
                session.note(format!("Ended early: the load {} did not start: {error}.", kind.as_str()));
                break;
            }
        };
        while Instant::now() < until.min(end) && !stop.is_requested() {
            for (_, measure, statistics, lack) in &mut contenders {
                let recorder = Arc::new(Recorder::new(turn));
                let window = Window { recorder: Arc::clone(&recorder), until: turn, stop: stop.clone() };
                match measure(&window) {
                    Ok(lacks) if lack.is_empty() => lack.extend(lacks),
                    Ok(_) => {}
                    Err(why) => {
                        session.note(format!("Ended early: {why}."));
                        break 'run;
                    }
                }
                recorder.values().for_each(|ns| statistics.record_ps(ns.saturating_mul(1000)));
            }
            // After the first turn all memory is allocated.
            memory_kib = memory_kib.or_else(resident_kib);
        }
    }
    let grown = memory_kib.zip(resident_kib()).map(|(before, after)| Quantity {
        name: "resident memory of the process, grown by".into(),
        value: after as f64 - before as f64,
        unit: "KiB".into(),
    });
    for (row, _, statistics, lack) in contenders {
        let row = Row { quantities: grown.clone().into_iter().collect(), ..row };
        session.add_figures(row, statistics.distribution(), &lack);
    }
}

/// Returns the resident memory of this process.
fn resident_kib() -> Option<u64> {
    let status = read("/proc/self/status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
