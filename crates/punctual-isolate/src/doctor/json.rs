//! The machine-readable report: `docs/doctor-schema.json` describes it.

use serde::Serialize;

use super::{Chosen, Finding, Outcome, Report, Scene, Unknown};

/// The version of the format. Incremented when the meaning of a field changes or a field is
/// removed.
pub const SCHEMA: &str = "punctual-doctor/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    kernel: &'a str,
    preempt_rt: Option<bool>,
    hypervisor: Option<String>,
    online: Vec<usize>,
    cpus: Vec<usize>,
    chosen: Chosen,
    band: [u8; 2],
    app: Option<&'a str>,
    fit: bool,
    checks: &'a [Outcome],
    findings: &'a [Finding],
    unknown: &'a [Unknown],
}

/// Returns the report as one JSON document.
#[must_use]
pub fn json(scene: &Scene, report: &Report) -> String {
    let machine = scene.machine;
    let document = Document {
        schema: SCHEMA,
        kernel: &super::finding::clean(&machine.kernel.release),
        preempt_rt: machine.kernel.preempt_rt,
        hypervisor: machine.hypervisor.as_deref().map(super::finding::clean),
        online: machine.topology.online.iter().collect(),
        cpus: scene.cpus.iter().collect(),
        chosen: scene.chosen,
        band: [*scene.band.start(), *scene.band.end()],
        app: scene.app.as_ref().map(|app| app.name.as_str()),
        fit: report.is_fit(),
        checks: &report.outcomes,
        findings: &report.findings,
        unknown: &report.unknown,
    };
    serde_json::to_string_pretty(&document).expect("all map keys are text")
}
