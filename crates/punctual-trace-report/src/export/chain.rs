//! Exports chains of tasks as JSON and as a table.

use punctual_report::table::{Cell, Column, Table};
use punctual_trace::jobs::Job;
use punctual_trace::names::Names;
use punctual_trace::stats::{Key, Summary};
use serde::Serialize;

use super::table::time;
use super::{VERSION, phase_name};
use crate::chains::{Chain, Crossing, Stage};

/// Returns a table with a row for each stage of a chain, named by `names`, and one for the total.
#[must_use]
pub fn chain_table(chain: &Chain, names: &[String]) -> Table {
    let times = ["max µs", "p99.9", "p50", "mean"].map(Column::micros);
    let columns = [Column::left("stage")].into_iter().chain(times).chain([Column::right("crossings")]);
    let mut table = Table::new(columns);
    let mut row = |name: String, summary: &Summary| {
        let Summary { max, p999, p50, mean, count, .. } = *summary;
        let times = [max, p999, p50, mean.round() as u64].map(|ns| time(summary, ns));
        table.row([Cell::new(name)].into_iter().chain(times).chain([Cell::count(count)]));
    };
    let stages = chain.stages();
    for (index, (name, summary)) in names.iter().zip(&stages).enumerate() {
        let until = match names.get(index + 1) {
            Some(next) => format!("{name} until it wakes {next}"),
            None => format!("{name} to its end"),
        };
        row(until, summary);
    }
    row("end to end".to_owned(), &chain.latency());
    table
}

/// Formats a crossing of a chain as a JSON object on one line.
#[must_use]
pub fn crossing(crossing: &Crossing, names: &Names) -> String {
    let stages = crossing.jobs.iter().zip(&crossing.stages);
    let object = CrossingObject {
        version: VERSION,
        kind: "crossing",
        from_ns: crossing.stages.first().map_or(0, |stage| stage.from),
        to_ns: crossing.stages.last().map_or(0, |stage| stage.to),
        min_ns: crossing.latency.lo(),
        max_ns: crossing.latency.hi(),
        precision: crossing.latency.precision(),
        stages: stages.map(|(job, stage)| StageObject::new(job, stage, names)).collect(),
    };
    serde_json::to_string(&object).expect("it has numbers, texts and lists of them only")
}

#[derive(Serialize)]
struct CrossingObject {
    version: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    from_ns: u64,
    to_ns: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    precision: &'static str,
    stages: Vec<StageObject>,
}

#[derive(Serialize)]
struct StageObject {
    name: String,
    /// Number of the job.
    number: u64,
    from_ns: u64,
    to_ns: u64,
    /// Names of phases, as in segments, and their times.
    parts: Vec<(&'static str, u64)>,
}

impl StageObject {
    fn new(job: &Job, stage: &Stage, names: &Names) -> Self {
        Self {
            name: names.at(job.end).of(Key::of(job).actor),
            number: job.number,
            from_ns: stage.from,
            to_ns: stage.to,
            parts: stage.parts.iter().map(|part| (phase_name(part.phase), part.ns)).collect(),
        }
    }
}
