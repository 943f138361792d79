//! `punctual check`: one command, one verdict. Composes the doctor, the measurements of an app and
//! response-time analysis.

pub(crate) mod args;
mod measure;
mod page;
mod text;
mod verdict;

use punctual_isolate::doctor::{self, Scene, examine};
use punctual_report::escape::Printable;
use punctual_report::format::format_nanos;
use serde_json::{Value, json};

use self::args::Check;
use self::measure::Measured;
use self::verdict::{Answer, Verdict};
use crate::output;
use crate::parse::Deadline;

/// Returns the exit status, or the reason why nothing could be checked.
pub(crate) fn run(arguments: &Check) -> Result<u8, String> {
    arguments.json.check()?;
    output::check("--html", arguments.html.as_deref())?;
    Deadline::check(&arguments.deadlines)?;
    let Measured { subject, machine, app } = measure::measure(arguments)?;
    let scene = machine.as_ref().map(crate::doctor::scene).transpose()?;
    let scene = match (scene, app) {
        (Some(scene), Some(app)) => Some(scene.for_app(app)?),
        (scene, _) => scene,
    };
    let examined = scene.as_ref().map(examine);
    let verdict = Verdict::new(subject, examined.as_ref());
    let lines = Lines::new(&verdict, scene.as_ref());
    let document = || json(&verdict, scene.as_ref());
    let mut is_written = arguments.json.write(|| text::text(&verdict, &lines), document);
    is_written &= output::write("--html", arguments.html.as_deref(), || page::page(&verdict, &lines));
    Ok(if is_written { verdict.answer.status() } else { Answer::Unknown.status() })
}

/// The first lines of text and page.
struct Lines {
    /// The answer and its reason.
    answer: String,
    /// The subject and the machine.
    about: String,
}

impl Lines {
    fn new(verdict: &Verdict, scene: Option<&Scene>) -> Self {
        let subject = &verdict.subject;
        let mut about = vec![Printable(&subject.name).to_string()];
        if let Some(length) = subject.length {
            about.push(format_nanos(length as f64));
        }
        about.extend(scene.map(doctor::text::machine));
        let answer = format!("{}: {}", verdict.answer.as_str(), verdict.reason);
        Self { answer, about: about.join("; ") }
    }
}

/// Returns the whole result as JSON, schema `punctual-check/1`, described in
/// `docs/check-schema.json`. Times are in ns.
fn json(verdict: &Verdict, scene: Option<&Scene>) -> String {
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
