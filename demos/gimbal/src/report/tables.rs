//! The tables of the report. Maxima come first, because deadlines apply to them.

use super::{Outcome, RunSummary, SettingRow, TaskRow};
use punctual_report::format::format_count;
use punctual_report::page::{self, Facts};
use punctual_report::table::{Cell, Column, Table};

/// Writes the timing of every task.
pub(super) fn tasks(summary: &RunSummary, out: &mut String) {
    let mut columns = vec![Column::left("Task"), Column::right("Level")];
    for group in ["Release jitter J, µs", "Response time R, µs", "Execution time C, µs"] {
        columns.extend(["max", "p99.9", "p50", "mean"].map(|head| Column::micros(head).group(group)));
    }
    columns.extend(["Misses", "Overruns", "Suspended", "Jobs"].map(Column::right));
    let mut table = Table::new(columns).class("dense");
    summary.tasks.iter().for_each(|task| task_row(task, &mut table));
    *out += "<section><h2>Tasks</h2>";
    *out += &page::note(
        "J: time from a job's planned release to its start. R: time from its planned release to its end. \
         C: time from its start to its end without jobs that preempted it and its own suspensions; time \
         that other programs had the CPU counts. Misses: jobs that ended after their deadline. \
         Suspended: jobs that suspended themselves.",
    );
    if summary.tasks.iter().any(|task| task.misses > 0) {
        let is_refused = |setting: &SettingRow| setting.outcome == Outcome::Refused;
        *out += &page::note(if summary.settings.iter().any(is_refused) {
            "Deadlines were missed: some real-time settings were refused (see below), so other programs can delay the tasks."
        } else {
            "Deadlines were missed: J shows how late jobs started, C how long they ran; the rest of R went to other tasks."
        });
    }
    *out += &table.html("Timing of the tasks");
    *out += "</section>\n";
}

fn task_row(task: &TaskRow, table: &mut Table) {
    let mut cells = vec![Cell::new(&*task.name), Cell::count(task.level.into())];
    for times in [&task.jitter, &task.response, &task.execution] {
        let times = [times.max_ns, times.p999_ns, times.p50_ns, times.mean_ns];
        let [max, p999, p50, mean] = times.map(|ns| match task.jobs {
            0 => Cell::none(),
            _ => Cell::micros(ns),
        });
        cells.extend([max.class("key"), p999, p50, mean]);
    }
    cells.extend([task.misses, task.overruns, task.suspensions].map(Cell::fault));
    cells.push(Cell::count(task.jobs));
    table.row(cells);
}

/// Writes the real-time settings that are in effect.
pub(super) fn settings(settings: &[SettingRow], out: &mut String) {
    *out += "<section><h2>Real-time settings</h2>";
    if settings.is_empty() {
        *out += &page::note("None.");
    } else {
        let heads = ["Setting", "Outcome", "In effect", "Asked for"].map(Column::left);
        let mut table = Table::new(heads.into_iter().chain([Column::wrap("Note")]));
        for SettingRow { name, wanted, effective, outcome, note } in settings {
            let (class, outcome) = match outcome {
                Outcome::Applied => ("good", "✓ applied"),
                Outcome::Partial => ("fault", "≠ in part"),
                Outcome::Refused => ("fault", "✕ refused"),
                Outcome::NotRequested => ("muted", "– not asked for"),
            };
            let (name, outcome) = (Cell::new(&**name), Cell::new(outcome).class(class));
            table.row([name, outcome, Cell::new(&**effective), Cell::new(&**wanted), Cell::new(&**note)]);
        }
        *out += &table.html("Real-time settings");
    }
    *out += "</section>\n";
}

/// Writes the conditions of the run, and the traffic on the bus.
pub(super) fn conditions(summary: &RunSummary, out: &mut String) {
    let mut facts = Facts::default();
    for condition in &summary.meta.conditions {
        facts.add(&condition.name, &condition.value);
    }
    let link = &summary.link;
    let exchanges = format_count(link.exchanges);
    let losses = [
        (link.lost_commands, "commands lost"),
        (link.lost_feedback, "feedback frames lost"),
        (link.crc_errors, "CRC errors"),
        (link.format_errors, "malformed frames"),
        (link.bus_errors, "bus errors"),
        (link.behind, "with the simulation behind"),
    ];
    let losses = losses.iter().filter(|loss| loss.0 > 0);
    let losses: Vec<String> =
        losses.map(|(count, what)| format!("{} {what}", format_count(*count))).collect();
    if losses.is_empty() {
        facts.add("SPI exchanges", &format!("{exchanges}, none lost or damaged"));
    } else {
        facts.add_fault("SPI exchanges", &format!("{exchanges}, {}", losses.join(", ")));
    }
    *out += "<section><h2>Run conditions</h2>";
    *out += &facts.html();
    *out += "</section>\n";
}
