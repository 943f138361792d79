//! The human-readable report.

use std::fmt::Write as _;

use punctual_report::text::wrapped;

use super::{Chosen, Report, Scene, Severity};

/// Returns the report as text with lines of at most `width` characters, except for commands.
#[must_use]
pub fn text(scene: &Scene, report: &Report, width: usize) -> String {
    let mut out = head(scene);
    let mut printed = Severity::High;
    for finding in &report.findings {
        if finding.severity == Severity::Note && printed != Severity::Note {
            out += "\nNotes\n";
        }
        printed = finding.severity;
        out.push('\n');
        out += &wrapped(&format!("{:<6}  ", finding.severity.as_str()), &finding.found, 8, width);
        let mut line =
            |label: &str, text: &str| out += &wrapped(&format!("        {label}"), text, 15, width);
        line("why    ", &finding.why);
        if let Some(cost) = &finding.cost {
            line("cost   ", &cost.line());
        }
        for fix in &finding.fixes {
            let _ = writeln!(out, "        fix    {}", fix.command);
            let by_us = if fix.changes.is_empty() { "" } else { "; --fix applies it" };
            let _ = writeln!(out, "               ({}{by_us})", fix.lasts.as_str());
        }
        let _ = writeln!(out, "        check  {}", finding.check);
    }
    if !report.unknown.is_empty() {
        out += "\nUnknown\n";
        for unknown in &report.unknown {
            out +=
                &wrapped("  ", &format!("{}: {} ({})", unknown.check, unknown.what, unknown.why), 4, width);
        }
    }
    out + "\n" + &verdict(report)
}

/// Describes the machine in a line: its kernel, its CPUs and its hypervisor.
#[must_use]
pub fn machine(scene: &Scene) -> String {
    let machine = scene.machine;
    let rt = match machine.kernel.preempt_rt {
        Some(true) => "PREEMPT_RT",
        Some(false) => "not PREEMPT_RT",
        None => "PREEMPT_RT unknown",
    };
    let on = machine.hypervisor.as_ref().map_or(String::new(), |name| format!(", a guest of {name}"));
    let release = match machine.kernel.release.as_str() {
        "" => "of unknown release",
        release => release,
    };
    let line = format!("Linux {release}, {rt}, {} online{on}", machine.topology.online.named());
    super::finding::clean(&line)
}

fn head(scene: &Scene) -> String {
    let mut out = machine(scene) + "\n";
    let why = match scene.chosen {
        Chosen::Asked => "as requested".into(),
        Chosen::App => format!("used by {}", scene.app.as_ref().map_or("the app", |app| &app.name)),
        Chosen::Isolated => "isolated".into(),
        Chosen::Usual => "the default for an app".into(),
    };
    let band = format!("priorities {} to {}", scene.band.start(), scene.band.end());
    let _ = writeln!(out, "Checking {} ({why}), {band}", scene.cpus.named());
    super::finding::clean(out.trim_end()).replace("\\n", "\n") + "\n"
}

/// Returns the status and the value of every check, in lines of at most `width` characters.
#[must_use]
pub fn checks(report: &Report, width: usize) -> String {
    let line = |check: &str, status: &str, value: &str| {
        let start = format!("{check:<17}  {status:<14}  ");
        wrapped(&start, value, start.chars().count(), width)
    };
    let lines = report
        .outcomes
        .iter()
        .map(|outcome| line(outcome.check, outcome.status.as_str(), outcome.value.as_deref().unwrap_or("–")));
    line("check", "status", "value") + &lines.collect::<String>()
}

fn verdict(report: &Report) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let counts =
        [Severity::High, Severity::Medium, Severity::Low].map(|severity| (count(severity), severity));
    let printed: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| format!("{count} {}", severity.as_str()))
        .collect();
    let unknown = match report.unknown.len() {
        0 => String::new(),
        1 => "; 1 unknown property".into(),
        n => format!("; {n} unknown properties"),
    };
    match printed.is_empty() {
        true => format!("no findings{unknown}\n"),
        false => format!("findings: {}{unknown}\n", printed.join(", ")),
    }
}
