//! An update as a line of JSON, with times in ns.

use punctual_core::metrics::{Figure, Term};
use serde_json::{Value, json};

use super::figures::{Row, Stat};
use super::memory::{Memory, Snapshot, Traffic};

/// Returns the line.
pub(crate) fn line(memory: &Memory, snapshot: &Snapshot, rows: &[Row]) -> String {
    let about = &memory.about;
    let partitions = about.partitions.iter().map(|p| json!({ "name": p.name, "cpu": p.cpu }));
    let object = json!({
        "schema": "punctual-top/1",
        "app": about.app,
        "program": about.program,
        "process": memory.found().process,
        "user": memory.found().user_name(),
        "punctual": about.punctual,
        "started": snapshot.started,
        "updated": snapshot.updated,
        "stale": snapshot.is_stale(),
        "stopping": snapshot.stopping,
        "dropped_jobs": snapshot.dropped,
        "helpers": { "starts": snapshot.helper_starts, "ends": snapshot.helper_ends },
        "partitions": partitions.collect::<Vec<_>>(),
        "tasks": rows.iter().map(task).collect::<Vec<_>>(),
        "traffic": snapshot.traffic.iter().map(traffic).collect::<Vec<_>>(),
        "missing": about.missing,
        "notes": about.notes,
    });
    format!("{object}\n")
}

fn task(row: &Row) -> Value {
    // A quantity that is not measured is unknown, not zero.
    let known = |of_jobs: bool, value: Value| if row.measured || !of_jobs { value } else { Value::Null };
    let mut task = json!({
        "name": row.name,
        "partition": row.partition,
        "level": row.level,
        "period": row.period,
        "deadline": row.deadline,
        "jobs_per_second": known(true, row.rate.into()),
    });
    for figure in Figure::ALL {
        task[figure.row().key] = known(figure.row().of_jobs, row.number(figure).into());
    }
    for term in Term::ALL {
        task[term.row().key] = if row.has_times() { stat(row.term(term)) } else { Value::Null };
    }
    task
}

fn traffic(traffic: &Traffic) -> Value {
    let Traffic { name, carried, lost, refused } = traffic;
    json!({ "name": name, "carried": carried, "lost": lost, "refused": refused })
}

fn stat(stat: &Stat) -> Value {
    let Stat { last, max, p50, p999, mean, .. } = stat;
    json!({ "last": last, "max": max, "p50": p50, "p999": p999, "mean": mean })
}
