//! An update as a table for people.

use punctual_core::metrics::Figure;
use punctual_report::format::{format_count, format_counted, format_nanos};
use punctual_report::table::{Cell, Column, Table};

use super::columns::{self, Value};
use super::figures::Row;
use super::memory::{Memory, Snapshot, Traffic};

/// Returns the head line, which identifies the app.
pub(crate) fn head(memory: &Memory, snapshot: &Snapshot) -> String {
    let about = &memory.about;
    let program = about.program.as_deref().filter(|program| *program != about.app);
    let program = program.map_or(String::new(), |program| format!(" of {program}"));
    let state = match (snapshot.started, snapshot.stopping) {
        (0, _) => "in init".to_owned(),
        (_, true) => "stopping".to_owned(),
        (started, false) => {
            format!("up {}", format_nanos(snapshot.updated.saturating_sub(started) as f64))
        }
    };
    let stale = if snapshot.is_stale() {
        format!(", STALE: not updated for {}", format_nanos(snapshot.age as f64))
    } else {
        String::new()
    };
    let (user, process) = (memory.found().user_name(), memory.found().process);
    format!("{}{program}, user {user}, process {process}, {state}{stale}", about.app)
}

/// Summarizes missing settings; `None` if none exist.
pub(crate) fn wrong(memory: &Memory) -> Option<String> {
    let missing = memory.about.missing.len() as u64;
    (missing > 0).then(|| format!("{} missing", format_counted(missing, "real-time setting")))
}

/// Summarizes lost messages; `None` if none exist.
pub(crate) fn losses(snapshot: &Snapshot) -> Option<String> {
    let sum = |of: fn(&Traffic) -> u64| snapshot.traffic.iter().map(of).fold(0, u64::saturating_add);
    let (lost, refused) = (sum(|traffic| traffic.lost), sum(|traffic| traffic.refused));
    let words = [(lost, "lost"), (refused, "refused")].into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> =
        words.map(|(count, what)| format!("{} {what}", format_counted(count, "message"))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Counts starts and ends of helper processes; `None` if the app has none.
pub(crate) fn helpers(snapshot: &Snapshot) -> Option<String> {
    let [starts, ends] = [(snapshot.helper_starts, "start"), (snapshot.helper_ends, "end")]
        .map(|(count, what)| format_counted(count, what));
    let line = format!("helper processes: {starts}, {ends} that the app had not requested");
    (snapshot.helper_starts > 0).then_some(line)
}

/// Describes the messages of a topic.
pub(crate) fn in_words(traffic: &Traffic) -> String {
    let Traffic { carried, lost, refused, .. } = traffic;
    let mut text = format_counted(*carried, "message");
    for (count, what) in [(lost, "lost"), (refused, "refused")].into_iter().filter(|(count, _)| **count > 0) {
        text += &format!(", {} {what}", format_count(*count));
    }
    text
}

/// Returns the table of an update, with the lines around it.
pub(crate) fn table(memory: &Memory, snapshot: &Snapshot, rows: &[Row]) -> String {
    let columns = columns::printed(memory.about.partitions.len() > 1);
    let heads = columns.iter().map(|(group, column)| match column.is_text() {
        true => Column::left(column.head),
        false => Column::right(column.head).group(group),
    });
    let mut table = Table::new([Column::left("task")].into_iter().chain(heads));
    for row in rows {
        let cells = columns.iter().map(|(_, column)| match column.value(row) {
            Value::Text(text) => Cell::new(text),
            Value::Count(count) => Cell::count(count),
            Value::Fault(count) => Cell::fault(count),
            Value::Nanos(ns) => Cell::nanos(ns as f64),
            Value::Unknown => Cell::none(),
        });
        table.row([Cell::new(&row.name)].into_iter().chain(cells));
    }
    let mut text = format!("{}\n{table}", head(memory, snapshot));
    for row in rows {
        for figure in Figure::ALL {
            if let (Some(noun), count @ 1..) = (figure.row().noun, row.number(figure)) {
                text += &format!("{}: {}\n", row.name, format_counted(count, noun));
            }
        }
        if let suspended @ 1.. = row.number(Figure::Suspended) {
            text += &format!(
                "{}: {} suspended themselves, for up to {}\n",
                row.name,
                format_counted(suspended, "job"),
                format_nanos(row.number(Figure::SuspensionMax) as f64)
            );
        }
    }
    for traffic in &snapshot.traffic {
        text += &format!("{}: {}\n", traffic.name, in_words(traffic));
    }
    text += &helpers(snapshot).map_or(String::new(), |line| line + "\n");
    for missing in &memory.about.missing {
        text += &format!("missing: {missing}\n");
    }
    text + "\n"
}
