//! The machine-readable report: `docs/doctor-schema.json` describes it.

use serde::Serialize;

use super::{Chosen, Report, Scene, Source};

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
    chosen: &'static str,
    band: [u8; 2],
    app: Option<&'a str>,
    fit: bool,
    checks: Vec<Checked<'a>>,
    findings: Vec<Item<'a>>,
    unknown: Vec<Gap<'a>>,
}

#[derive(Serialize)]
struct Checked<'a> {
    check: &'static str,
    status: &'static str,
    value: Option<&'a str>,
}

#[derive(Serialize)]
struct Item<'a> {
    check: &'static str,
    severity: &'static str,
    found: &'a str,
    why: &'a str,
    cost: Option<Price<'a>>,
    fixes: Vec<Remedy<'a>>,
}

#[derive(Serialize)]
struct Price<'a> {
    ns: u64,
    of: &'a str,
    source: &'static str,
}

#[derive(Serialize)]
struct Remedy<'a> {
    command: &'a str,
    lasts: &'static str,
    automatic: bool,
}

#[derive(Serialize)]
struct Gap<'a> {
    check: &'static str,
    what: &'a str,
    why: &'a str,
}

/// Returns the report as one JSON document.
#[must_use]
pub fn json(scene: &Scene, report: &Report) -> String {
    let machine = scene.machine;
    let findings = report.findings.iter().map(|finding| Item {
        check: finding.check,
        severity: finding.severity.as_str(),
        found: &finding.found,
        why: &finding.why,
        cost: finding.cost.as_ref().map(|cost| Price {
            ns: cost.ns,
            of: &cost.of,
            source: match cost.source {
                Source::Measured => "measured",
                Source::Stated => "stated",
                Source::Typical => "typical",
            },
        }),
        fixes: finding
            .fixes
            .iter()
            .map(|fix| Remedy {
                command: &fix.command,
                lasts: match fix.lasts {
                    super::Lasts::UntilReboot => "until-reboot",
                    super::Lasts::Always => "always",
                    super::Lasts::FromReboot => "from-reboot",
                    super::Lasts::ThisStart => "this-start",
                },
                automatic: !fix.changes.is_empty(),
            })
            .collect(),
    });
    let unknown = report.unknown.iter();
    let document = Document {
        schema: SCHEMA,
        kernel: &super::finding::clean(&machine.kernel.release),
        preempt_rt: machine.kernel.preempt_rt,
        hypervisor: machine.hypervisor.as_deref().map(super::finding::clean),
        online: machine.topology.online.iter().collect(),
        cpus: scene.cpus.iter().collect(),
        chosen: match scene.chosen {
            Chosen::Asked => "asked",
            Chosen::App => "app",
            Chosen::Isolated => "isolated",
            Chosen::Usual => "usual",
        },
        band: [*scene.band.start(), *scene.band.end()],
        app: scene.app.as_ref().map(|app| app.name.as_str()),
        fit: report.is_fit(),
        checks: report
            .outcomes
            .iter()
            .map(|outcome| Checked {
                check: outcome.check,
                status: outcome.status.as_str(),
                value: outcome.value.as_deref(),
            })
            .collect(),
        findings: findings.collect(),
        unknown: unknown.map(|gap| Gap { check: gap.check, what: &gap.what, why: &gap.why }).collect(),
    };
    serde_json::to_string_pretty(&document).expect("all map keys are text")
}
