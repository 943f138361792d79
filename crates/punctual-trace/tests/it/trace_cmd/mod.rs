//! Output of `trace-cmd report` for a recording.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedChild, TEST_LIMIT};
use punctual_trace::event::Kind;
use test_skip::{Need, skip};

/// Output of libtraceevent instead of the fields of a record whose format it does not understand.
const UNREADABLE: &str = "[FAILED TO PARSE]";

/// Returns false for events that a reader adds to those of the recording.
pub(crate) fn is_recorded(kind: Kind) -> bool {
    !matches!(kind, Kind::Lost { .. } | Kind::Named { .. })
}

/// Returns the number of lines of each event, and requires that all formats are understood. Returns
/// `None` and prints a notice if trace-cmd is not installed.
pub(crate) fn printed(file: &Path) -> Option<BTreeMap<String, u64>> {
    let mut report = Command::new("trace-cmd");
    report.arg("report").arg("-i").arg(file).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut report) = report.spawn() else {
        skip(Need::Tool("trace-cmd"), "comparison with what it reads");
        return None;
    };
    let mut counts = BTreeMap::new();
    for line in BufReader::new(report.stdout.take().unwrap()).split(b'\n') {
        let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
        if let Some(name) = event_of(&line) {
            assert!(!line.contains(UNREADABLE), "{}: {line}", file.display());
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    let status = report.status_within(TEST_LIMIT).unwrap();
    assert!(status.success(), "{}: {status}", file.display());
    Some(counts)
}

/// Returns the event of a line such as `name-17  [001]  1234.567890: sched_switch: …`.
pub(crate) fn event_of(line: &str) -> Option<&str> {
    // A name may contain any characters, and so may the text after the event's name.
    line.match_indices(" [").find_map(|(at, _)| {
        let (cpu, rest) = line[at + 2..].split_once(']')?;
        let (time, rest) = rest.trim_start().split_once(": ")?;
        let time = time.rsplit(' ').next()?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // For a file that does not name its clock, trace-cmd 3.1.6 sometimes prints times in ns,
        // directly after the CPU.
        let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
        (is_number(cpu) && is_number(seconds) && is_number(fraction)).then_some(())?;
        rest.trim_start().split_once(':').map(|(name, _)| name)
    })
}
