//! The result as JSON, schema `punctual-check/1`, described in `docs/check-schema.json`.

use punctual_isolate::doctor::Scene;
use serde_json::{Value, json};

use super::verdict::Verdict;

/// Returns the whole result. Times are in ns.
pub(super) fn json(verdict: &Verdict, scene: Option<&Scene>) -> String {
    let subject = &verdict.subject;
    let document = json!({
        "schema": "punctual-check/1",
        "answer": verdict.answer.as_str(),
        "reason": verdict.reason,
        "subject": { "kind": subject.kind.as_str(), "name": subject.name, "length_ns": subject.length },
        "machine": scene.map(machine),
        "worst": verdict.worst().map(|task| &task.name),
        "tasks": subject.tasks.iter().map(|task| json!({
            "name": task.name,
            "period_ns": task.period,
            "deadline_ns": task.deadline,
            "jobs": task.jobs,
            "misses": task.misses,
            "unmeasured": task.unmeasured,
            "seen_ns": task.seen,
            "bound_ns": task.bound,
            "profiled_bound_ns": task.profiled_bound,
            "margin": task.margin(),
        })).collect::<Vec<_>>(),
        "causes": verdict.causes.iter().map(|cause| json!({
            "source": cause.source,
            "what": cause.what,
            "cost": cause.cost,
            "command": cause.command,
            "lasts": cause.lasts,
        })).collect::<Vec<_>>(),
        "unknown": subject.unknown.iter().map(|it| json!({ "what": it.what, "why": it.why })).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

fn machine(scene: &Scene) -> Value {
    let machine = scene.machine;
    json!({
        "kernel": machine.kernel.release,
        "preempt_rt": machine.kernel.preempt_rt,
        "hypervisor": machine.hypervisor,
        "cpus": scene.cpus.iter().collect::<Vec<_>>(),
    })
}
