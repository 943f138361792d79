//! Explains the latency of a crossing of a chain.

use punctual_report::format::format_part;
use punctual_trace::jobs::{Bounds, Job, Phase};
use punctual_trace::names::Names;
use punctual_trace::stats::Key;

use super::{causes, value, wait};
use crate::chains::{Crossing, Stage};
use crate::export::phase_name;

/// Returns one sentence for each stage, in order.
#[must_use]
pub fn crossing(crossing: &Crossing, names: &Names) -> Vec<String> {
    let all = crossing.latency.hi().or(crossing.latency.lo()).unwrap_or(0).max(1);
    let next = crossing.jobs.iter().skip(1).map(Some).chain([None]);
    let stages = crossing.jobs.iter().zip(&crossing.stages).zip(next);
    stages
        .map(|((job, stage), next)| {
            let names = &names.at(job.end);
            let who = names.of(Key::of(job).actor);
            let until = match next {
                Some(next) => format!("until it woke {}", names.of(Key::of(next).actor)),
                None => "to its end".into(),
            };
            let percent = 100 * u128::from(stage.ns()) / u128::from(all);
            let parts: Vec<_> = stage
                .parts
                .iter()
                .map(|part| format!("{} {}", phase_name(part.phase), format_part(part.ns)))
                .collect();
            let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
            let took = match stage.length {
                Bounds::Exact(ns) => format_part(ns),
                length => value(length),
            };
            format!("{who} took {took} ({percent} %) {until}{parts}{}.", delays(job, stage, names))
        })
        .collect()
}

/// Describes the delays of a job while it was on the critical path.
fn delays(job: &Job, stage: &Stage, names: &Names) -> String {
    let mut text = String::new();
    if stage.part(Phase::Jitter) > 0 && !job.jitter_causes.is_empty() {
        text += &format!(
            "; before it ran, {} of the CPU",
            causes(&job.jitter_causes, names).replace(" for ", " took ")
        );
    }
    if stage.part(Phase::Interference) > 0 {
        let whole = if stage.to < job.end { " until its end" } else { "" };
        text += &format!("; displaced by {}{whole}", causes(&job.interference_causes, names));
    }
    let waits = job.blockings.iter().filter(|wait| stage.from < wait.end && wait.start < stage.to);
    for wait in waits.take(super::NAMED) {
        text += &format!("; {}", wait::blocking(wait, names));
    }
    text
}
