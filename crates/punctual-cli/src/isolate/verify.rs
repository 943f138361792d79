//! Measures a CPU before and after it is taken, by the hourglass of `punctual bench`, in separate
//! processes.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use punctual_bench::model::{Row, Run};
use punctual_isolate::isolate::{JOURNAL, Plan, take};
use punctual_report::format::format_nanos;
use punctual_report::table::{Cell, Column, Table};
use rustix::process::Pid;

use super::Place;
use super::run::{Signals, start};
use crate::app::files;
use crate::output::{message, print};
use crate::status::FINDING;

pub(super) fn verify(plan: &Plan, length: Duration, place: &mut Place) -> Result<u8, String> {
    let Some(cpu) = plan.cpus.first() else { return Err("--cpus: there are none".into()) };
    let files =
        files().map_err(|error| format!("cannot create a directory for the measurements: {error}"))?;
    let (before, after) =
        (files.model.with_file_name("before.json"), files.model.with_file_name("after.json"));
    let signals = Signals::catch().map_err(|error| format!("cannot handle signals: {error}"))?;
    // An error now, and not after the first measurement, if settings cannot be changed.
    let begun = place.store.begin(JOURNAL, "a measurement", false, &mut place.settings).map(drop);
    begun.and_then(|()| place.store.undo(JOURNAL, &mut place.settings)).map_err(|error| error.to_string())?;
    // Not taken yet, so without its group.
    let free = Plan { group: None, ..plan.clone() };
    message!("CPU {cpu} as it is, {} for each kind of thread", format_nanos(length.as_nanos() as f64));
    let first = measure(&free, cpu, length, &before, &signals)?;
    let (_journal, refused) =
        take(plan, &place.store, false, &mut place.settings).map_err(|error| error.to_string())?;
    for line in &refused {
        message!("{line}");
    }
    message!("CPU {cpu} when it is taken");
    let second = measure(plan, cpu, length, &after, &signals);
    let code = place.give_back()?;
    let second = second?;
    if !(first.success() && second.success()) {
        message!("error: a measurement failed, or was interrupted");
        return Ok(FINDING);
    }
    print(&side_by_side(&rows(&before)?, &rows(&after)?));
    Ok(code)
}

fn measure(
    plan: &Plan,
    cpu: usize,
    length: Duration,
    to: &Path,
    signals: &Signals,
) -> Result<ExitStatus, String> {
    let itself = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let (cpu, length) = (cpu.to_string(), format!("{}ns", length.as_nanos()));
    let words = ["bench", "hourglass", "--cpus", &cpu, "--duration", &length];
    let mut command: Vec<OsString> = vec![itself.into()];
    command.extend(words.map(OsString::from));
    command.push(format!("--json={}", to.display()).into());
    let run = |child: Pid| signals.wait(child);
    start(plan, &command, Stdio::null()).and_then(run).map_err(|error| format!("the measurement: {error}"))
}

/// Returns the rows of a measurement.
fn rows(path: &Path) -> Result<Vec<Row>, String> {
    let text = punctual_files::read_text(path).map_err(|error| format!("the measurement: {error}"))?;
    let run: Run = serde_json::from_str(&text).map_err(|error| format!("the measurement: {error}"))?;
    Ok(run.suites.into_iter().flat_map(|suite| suite.rows).collect())
}

/// Compares the causes that took the CPU, before and after, for each kind of thread.
fn side_by_side(before: &[Row], after: &[Row]) -> String {
    let mut out = String::new();
    for kind in ["ordinary thread", "SCHED_FIFO"] {
        let find = |rows: &[Row]| rows.iter().find(|row| row.subject == kind).cloned().unwrap_or_default();
        let (before, after) = (find(before), find(after));
        let mut table = Table::new([
            Column::left(kind),
            Column::right("before"),
            Column::right("taken"),
            Column::right("longest before"),
            Column::right("taken"),
        ]);
        for quantity in &before.quantities {
            let of = |row: &Row| {
                let same = row.quantities.iter().find(|other| other.name == quantity.name);
                same.map_or("–".into(), |same| format!("{:.3} {}", same.value, same.unit))
            };
            table.row([
                Cell::new(&quantity.name),
                Cell::new(of(&before)),
                Cell::new(of(&after)),
                Cell::new(""),
                Cell::new(""),
            ]);
        }
        let mut names: Vec<&str> =
            before.causes.iter().chain(&after.causes).map(|cause| &*cause.name).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        for name in names {
            let of = |row: &Row| row.causes.iter().find(|cause| cause.name == name).cloned();
            let (one, other) = (of(&before), of(&after));
            let total = |cause: &Option<punctual_bench::model::Cause>| {
                cause.as_ref().map_or("0 ns".into(), |cause| format_nanos(cause.total_ns))
            };
            let most = |cause: &Option<punctual_bench::model::Cause>| {
                cause.as_ref().map_or("–".into(), |cause| format_nanos(cause.max_ns))
            };
            table.row([
                Cell::new(punctual_report::escape::Printable(name).to_string()),
                Cell::new(total(&one)),
                Cell::new(total(&other)),
                Cell::new(most(&one)),
                Cell::new(most(&other)),
            ]);
        }
        out += &format!("{table}\n");
    }
    out
}
