//! Events in addition to those of the groups: `--events usual,syscalls,net:*`.

mod support;
#[path = "../../punctual/tests/support/tracefs.rs"]
mod tracefs;

use std::fs;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_trace::event::Kind;
use punctual_trace::read::Trace;
use support::{Scratch, punctual, text};
use test_skip::{Need, skip};

#[test]
fn records_and_shows_any_tracepoint() {
    let scratch = Scratch::new("events");
    if let Err(why) = tracefs::enter() {
        eprintln!("tracefs cannot be mounted here: {why}");
    }
    let run = |arguments: &[&str]| {
        let output = punctual(&[&["trace"], arguments].concat())
            .current_dir(&scratch.0)
            .output_within(TEST_LIMIT)
            .unwrap();
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let (_, err, code) = run(&["record", "-o", "probe.dat", "--duration", "0s"]);
    if code != Some(0) {
        return skip(Need::Tracefs, err);
    }
    let script = "exec 3>out; for i in 1 2 3 4 5 6 7 8 9; do echo line >&3; /bin/true; done";
    let events = ["--events", "sched,syscalls,task:*"];
    let (_, err, code) =
        run(&[&["record", "-o", "t.dat"], &events[..], &["--", "sh", "-c", script]].concat());
    assert_eq!(code, Some(0), "{err}");

    let trace = Trace::open(&scratch.file("t.dat")).unwrap();
    let id = |name: &str| trace.formats().iter().find(|format| format.name == name).unwrap().id;
    let (new_task, mut created) = (id("task_newtask"), 0);
    let mut events = trace.events().unwrap().with_others();
    let mut writes = 0;
    for event in events.by_ref() {
        match event.unwrap().kind {
            Kind::Other { event } if event == new_task => created += 1,
            // The names contain that of write(2) on this machine.
            Kind::SyscallEnter { .. } => writes += 1,
            _ => {}
        }
    }
    assert!(created >= 9 && writes >= 9, "{created} tasks, {writes} calls");
    assert!(events.calls().iter().any(|(_, name)| name == "write"));
    // Without a request, they are not there.
    let known = trace.events().unwrap().all(|event| !matches!(event.unwrap().kind, Kind::Other { .. }));
    assert!(known);
    assert!(trace.processes().count() > 1);

    let files = ["--html", "t.html", "--perfetto", "t.pftrace"];
    let (out, err, _) = run(&[&["report", "t.dat", "--task", "*"], &files[..]].concat());
    assert!(out.contains(" system call"), "{out}{err}");
    let perfetto = text(&fs::read(scratch.file("t.pftrace")).unwrap());
    assert!(perfetto.contains("task:task_newtask") && perfetto.contains("write"));
    assert!(fs::read_to_string(scratch.file("t.html")).unwrap().contains("class=\"call\""));

    let (_, err, code) = run(&["record", "-o", "x.dat", "--events", "usual,no_such:*"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("the kernel has no event `no_such:*`"), "{err}");
    assert!(!scratch.file("x.dat.raw").exists());
}
