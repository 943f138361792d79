//! `punctual trace merge` as a user calls it.

use crate::support::{Scratch, punctual, text};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::write::synthetic::Synthetic;

/// Creates a directory of a recording with a named real-time thread.
fn recording(scratch: &Scratch, name: &str, thread: &str) {
    let mut synthetic = Synthetic::create(&scratch.file(name)).unwrap();
    synthetic.name(411, thread);
    let (idle, task) = (Task { id: 0, priority: 120 }, Task { id: 411, priority: 9 });
    for job in 1..=20 {
        let t = job * 1_000_000;
        for (after, by, kind) in [
            (0, 0, Kind::Waking { task, cpu: 0 }),
            (2_000, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: task }),
            (90_000, 411, Kind::Switch { from: task, reason: SwitchOut::Sleeping, to: idle }),
        ] {
            synthetic.push(&Event { time: t + after, cpu: 0, by, kind }).unwrap();
        }
    }
    synthetic.finish().unwrap();
}

fn run(scratch: &Scratch, arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = punctual(&[&["trace"], arguments].concat())
        .current_dir(&scratch.0)
        .output_within(TEST_LIMIT)
        .unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn reports_jobs_of_both_machines_from_one_file() {
    let scratch = Scratch::new("merge");
    recording(&scratch, "a", "control");
    recording(&scratch, "b", "motor");
    let (_, err, code) = run(&scratch, &["merge", "a", "b", "-o", "both.dat", "--shared-clock", "2.5us"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("b: its clock is shared, ± 2.50 µs; its threads have numbers 10000000 higher"),
        "{err}"
    );
    let (out, err, code) = run(&scratch, &["report", "both.dat"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("control/411") && out.contains("motor/10000411"), "{out}");
    assert!(out.contains("120 events of 2 CPUs") && out.contains("its times ± 2.5 µs"), "{out}");
}

#[test]
fn error_names_events_that_relate_clocks() {
    let scratch = Scratch::new("bad-merge");
    recording(&scratch, "a", "control");
    recording(&scratch, "b", "motor");
    for (arguments, code, message) in [
        (&["merge", "a"][..], 2, "2 values required"),
        (&["merge", "a", "b"], 1, "punctual trace exchange"),
        (&["merge", "a", "missing"], 2, "missing: No such file"),
        (&["merge", "a", "b", "-o", "/no/such/place"], 2, "--output /no/such/place"),
        (&["exchange"], 2, "HOST:PORT"),
        (&["exchange", "guest"], 2, "write a host and a port, such as"),
        (&["exchange", "--listen", "x:y"], 2, "write a host and a port, such as"),
    ] {
        let (_, err, found) = run(&scratch, arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
    let mut exchange = punctual(&["trace", "exchange", "127.0.0.1:9"]);
    let output = exchange.env("PUNCTUAL_TRACE", "/no/such/marker").output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("punctual trace record --"), "{}", text(&output.stderr));
    assert!(!scratch.file("merged.dat").exists());
}
