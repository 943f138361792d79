//! The tables of the report. Wherever there is a maximum it comes first: it is what deadlines are about.

use super::data::{Distribution, Outcome, RunSummary, SettingRow, TaskRow};
use punctual_html::{Escaped, Grouped, Micros};
use std::fmt::{self, Formatter};

/// Writes the timing of every task.
pub(super) fn tasks(summary: &RunSummary, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(
        "<section><h2>Tasks</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Timing of the tasks\">\
         <table class=\"tasks\"><thead><tr><th rowspan=\"2\">Task</th><th rowspan=\"2\">Level</th>\
         <th colspan=\"4\" class=\"group\">Release jitter J, µs</th>\
         <th colspan=\"4\" class=\"group\">Response time R, µs</th>\
         <th colspan=\"4\" class=\"group\">Execution time C, µs</th>\
         <th rowspan=\"2\" class=\"group\">Misses</th><th rowspan=\"2\">Over-<br>runs</th>\
         <th rowspan=\"2\">Sus-<br>pended</th><th rowspan=\"2\">Jobs</th></tr><tr>",
    )?;
    for _ in 0..3 {
        f.write_str("<th class=\"group\">max</th><th>p99.9</th><th>p50</th><th>mean</th>")?;
    }
    f.write_str("</tr></thead><tbody>")?;
    for task in &summary.tasks {
        task_row(task, f)?;
    }
    f.write_str(
        "</tbody></table></div><p class=\"note\">J: from the planned release to the start of the job. \
         R: from the planned release to its end. C: processor time it took. Misses: jobs that ended after \
         their deadline. Suspended: times a job gave up the processor by itself.</p></section>",
    )
}

fn task_row(task: &TaskRow, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td>", Escaped(&task.name), task.level)?;
    for distribution in [&task.jitter, &task.response, &task.execution] {
        let Distribution { max_ns, p999_ns, p50_ns, mean_ns, .. } = distribution;
        if task.jobs == 0 {
            f.write_str("<td class=\"group\">–</td><td>–</td><td>–</td><td>–</td>")?;
        } else {
            write!(f, "<td class=\"group key\">{}</td><td>{}</td>", Micros(*max_ns), Micros(*p999_ns))?;
            write!(f, "<td>{}</td><td>{}</td>", Micros(*p50_ns), Micros(*mean_ns))?;
        }
    }
    fault_cell("group", task.misses, f)?;
    fault_cell("", task.overruns, f)?;
    fault_cell("", task.suspensions, f)?;
    write!(f, "<td>{}</td></tr>", Grouped(task.jobs))
}

/// A count that should be zero.
fn fault_cell(class: &str, count: u64, f: &mut Formatter<'_>) -> fmt::Result {
    let state = if count > 0 { "fault" } else { "zero" };
    write!(f, "<td class=\"{class} {state}\">{}</td>", Grouped(count))
}

/// Writes which real-time settings are in effect.
pub(super) fn settings(settings: &[SettingRow], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<section><h2>Real-time settings</h2>")?;
    if settings.is_empty() {
        return f.write_str("<p class=\"note\">None.</p></section>");
    }
    f.write_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Real-time settings\">\
         <table class=\"words\">\
         <thead><tr><th>Setting</th><th>Outcome</th><th>In effect</th><th>Asked for</th>\
         <th>Note</th></tr></thead>\
         <tbody>",
    )?;
    for SettingRow { name, wanted, effective, outcome, note } in settings {
        let (class, text) = match outcome {
            Outcome::Applied => ("good", "✓ applied"),
            Outcome::Partial => ("fault", "≠ in part"),
            Outcome::Refused => ("fault", "✕ refused"),
            Outcome::NotRequested => ("zero", "– not asked for"),
        };
        write!(f, "<tr><th scope=\"row\">{}</th><td class=\"{class}\">{text}</td>", Escaped(name))?;
        write!(f, "<td>{}</td><td>{}</td>", Escaped(effective), Escaped(wanted))?;
        write!(f, "<td>{}</td></tr>", Escaped(note))?;
    }
    f.write_str("</tbody></table></div></section>")
}

/// Writes under which conditions the run took place, and what went over the bus.
pub(super) fn conditions(summary: &RunSummary, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<section><h2>Run conditions</h2><dl>")?;
    for condition in &summary.meta.conditions {
        write!(f, "<dt>{}</dt><dd>{}</dd>", Escaped(&condition.name), Escaped(&condition.value))?;
    }
    let link = &summary.link;
    write!(f, "<dt>SPI exchanges</dt><dd>{}", Grouped(link.exchanges))?;
    let losses = [
        (link.lost_commands, "commands lost"),
        (link.lost_feedback, "feedback frames lost"),
        (link.crc_errors, "CRC errors"),
        (link.format_errors, "malformed frames"),
        (link.bus_errors, "bus errors"),
        (link.behind, "with the simulation behind"),
    ];
    let mut losses = losses.iter().filter(|loss| loss.0 > 0).peekable();
    if losses.peek().is_none() {
        f.write_str(", none lost or damaged")?;
    }
    for (count, what) in losses {
        write!(f, ", <span class=\"fault\">{} {what}</span>", Grouped(*count))?;
    }
    f.write_str("</dd></dl></section>")
}
