//! `punctual trace report --html` as a user calls it, on a capture of synthetic events.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::write::synthetic::Synthetic;

use crate::support::Scratch;

/// Twenty jobs of a thread, which take 100 µs to 119 µs.
fn capture(directory: &Path) {
    let (control, idle) = (Task { id: 701, priority: 9 }, Task { id: 0, priority: 120 });
    let mut trace = Synthetic::create(directory).unwrap();
    trace.name(701, "<control>");
    for job in 0..20 {
        let start = 1_000_000_000 + job * 1_000_000;
        let mut push = |after: u64, by: Task, kind| {
            trace.push(&Event { time: start + after, cpu: 0, by: by.id, kind }).unwrap();
        };
        push(0, idle, Kind::Waking { task: control, cpu: 0 });
        push(4_000, idle, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control });
        push(
            100_000 + job * 1_000,
            control,
            Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle },
        );
    }
    trace.finish().unwrap();
}

fn report(arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["trace", "report"]).args(arguments).output_within(TEST_LIMIT).unwrap()
}

#[test]
fn writes_page_with_jobs_of_trace() {
    let scratch = Scratch::new("page");
    let (trace, page) = (scratch.file("capture"), scratch.file("page.html"));
    capture(&trace);
    let output = report(&[&trace, "--html".as_ref(), &page]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains(&format!("written: {}", page.display())), "{out}");
    // The tables contain one longest job nevertheless.
    assert_eq!(out.matches("longest job").count(), 1, "{out}");

    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>capture</title>") && page.ends_with("</html>\n"));
    assert!(page.contains("<h2>&lt;control&gt;/701</h2>") && !page.contains("<control>"));
    assert!(page.contains("<td class=\"key\" title=\"119000 ns\">119"));
    // The twelve longest are drawn, and at most every fourth of the others.
    let drawn = |from: &u64| page.contains(&format!("data-ns=\"{}\"", from * 1_000 - 4_000));
    assert!((108..120).all(|from| drawn(&from)));
    assert!((100..108).filter(drawn).count() <= 2);
}

#[test]
fn rejects_overwriting_trace() {
    let scratch = Scratch::new("page-over");
    let trace = scratch.file("capture");
    capture(&trace);
    let page = scratch.file("no/such/directory");
    for (path, message) in [(trace.as_path(), "error: --html "), (&page, "error: --html ")] {
        let output = report(&[&trace, "--html".as_ref(), path]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).starts_with(message), "{output:?}");
    }
    assert!(report(&[&trace]).status.success());
}
