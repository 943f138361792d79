//! Pages of a real kernel (6.18, x86-64): two threads that wake each other, with interrupts.
//!
//! `tests/data` is a capture directory. Its expected contents are in `events.txt`, one event per
//! line; to regenerate it, set `BLESS` and compare it with the output of `trace-cmd report` for the
//! same pages.

use std::fmt::Write;
use std::path::Path;

use punctual_trace::read::Trace;

#[test]
fn decodes_pages_of_real_kernel() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let trace = Trace::open(&directory).unwrap();
    let mut events = trace.events().unwrap();
    let mut text = String::new();
    for event in events.by_ref() {
        let event = event.unwrap();
        writeln!(text, "{} cpu {} by {}: {:?}", event.time, event.cpu, event.by, event.kind).unwrap();
    }
    assert!(events.incomplete().is_empty());
    assert!(trace.unreadable().is_empty());
    let mut names: Vec<_> = events.threads().iter().map(|(_, name)| name.text().into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.iter().any(|name| name == "partner"), "{names:?}");
    let path = directory.join("events.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (line, (found, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", line + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}
