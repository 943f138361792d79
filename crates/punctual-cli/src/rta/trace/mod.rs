//! `punctual rta --trace`: bounds of the threads of a recording.

pub(crate) mod actors;
mod combine;
pub(crate) mod infer;
pub(crate) mod observe;
pub(crate) mod read;
mod text;

use punctual_analysis::infer::curves::Curves;
use punctual_analysis::infer::executions::Executions;
use punctual_analysis::infer::periodic::Periodic;
use punctual_analysis::infer::system::InferredThread;
use punctual_analysis::infer::thread::{Largest, Reading};
use punctual_analysis::json;
use serde_json::{Value, json};

use self::infer::{Result, contradictions};
use self::text::{priority, refusal};

pub(super) use self::combine::add;
pub(super) use self::infer::run;

/// Returns the inferred model of a recording as JSON: schema `punctual-inferred/1`, described in
/// `docs/inferred-schema.json`.
fn json(result: &Result) -> String {
    let Result { inferred, analysis, margins, .. } = result;
    let rta: Value =
        serde_json::from_str(&json::json(&inferred.system, analysis, margins)).unwrap_or_default();
    let why = |at: usize| inferred.unbounded.iter().find(|(of, _)| *of == at).map(|(_, why)| why);
    let report = json!({
        "schema": "punctual-inferred/1",
        "recording_ns": result.length,
        "threads": result.threads.iter().enumerate().map(|(at, it)| thread(it, why(at))).collect::<Vec<_>>(),
        "interrupts": result.handlers.iter().map(|it| json!({
            "name": it.name,
            "cpu": it.cpu,
            "times": it.curves.releases(),
            "distances": distances(&it.curves),
            "execution_ns": if it.is_unknown { Value::Null } else { executions(&it.executions) },
        })).collect::<Vec<_>>(),
        "waits": result.waits.iter().map(|it| json!({
            "thread": it.thread,
            "on": it.on,
            "holder": it.holder,
            "times": it.times,
            "longest_ns": it.longest,
            "total_ns": it.total,
        })).collect::<Vec<_>>(),
        "pwcet": result.threads.iter().zip(&result.fits).map(|(thread, fit)| json!({
            "thread": thread.name,
            "refused": refusal(fit),
            "fit": fit.as_ref().ok().map(|fit| json!({
                "block": fit.block,
                "blocks": fit.blocks,
                "runs": [fit.runs.value, fit.runs.most],
                "halves": [fit.halves.value, fit.halves.most],
                "shape": [fit.shape.value, fit.shape.most],
                "anderson_darling": [fit.fit.value, fit.fit.most],
                "location_ns": fit.location,
                "scale_ns": fit.scale,
                "execution_ns": fit.execution,
            })),
        })).collect::<Vec<_>>(),
        "contradictions": contradictions(result),
        "rta": rta,
    });
    serde_json::to_string_pretty(&report).unwrap_or_default()
}

fn thread(thread: &InferredThread, why_none: Option<&String>) -> Value {
    let seen = thread.seen();
    let is_known = thread.unknown.is_none() && seen.jobs > 0;
    let term = |it: Largest| {
        if is_known { json!({ "ns": it.ns, "job": it.job, "end_ns": it.end }) } else { Value::Null }
    };
    json!({
        "name": thread.name,
        "cpus": thread.cpus,
        "priority": priority(thread),
        "jobs": seen.jobs,
        "jobs_last_until": match thread.reading { Reading::Sleeps => "sleep", Reading::Timers => "timer" },
        "releases": seen.curves.releases(),
        "stretches": seen.curves.stretches(),
        "sporadic_ns": seen.curves.least().first(),
        "periodic": periodic(seen.periodic()),
        "possibly_periodic": periodic(seen.possibly_periodic()),
        "distances": distances(&seen.curves),
        "execution_ns": if is_known { executions(&seen.executions) } else { Value::Null },
        "lateness": term(seen.lateness),
        "waiting": term(seen.waiting),
        "suspended": term(seen.suspended),
        "displaced": term(seen.displaced),
        "response_ns": seen.slowest.and_then(|job| job.response()),
        "slowest_job": seen.slowest.map(|job| job.number),
        "why_no_bound": why_none,
    })
}

fn periodic(model: Option<Periodic>) -> Value {
    model.map_or(Value::Null, |Periodic { period, offset, jitter }| {
        json!({ "period_ns": period, "offset_ns": offset, "jitter_ns": jitter })
    })
}

/// Starting with two releases.
fn distances(curves: &Curves) -> Vec<Value> {
    let spans = curves.spans().iter().zip(2_u64..);
    let line = spans.map(|(span, releases)| {
        json!({
            "releases": releases,
            "least_ns": [span.least, span.least_most],
            "largest_ns": [span.largest_least, span.largest],
        })
    });
    line.collect()
}

/// C(1), C(2), …
fn executions(executions: &Executions) -> Value {
    json!({ "min": executions.min(), "longest": executions.longest() })
}

#[cfg(test)]
mod tests;
