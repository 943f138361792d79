//! `punctual trace convert` as a user calls it.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, program, punctual, text};
use punctual_trace::event::{Event, Kind};
use punctual_trace::read::Trace;
use punctual_trace::write::synthetic::Synthetic;
use test_skip::{Need, skip};

/// Creates a directory as left by an interrupted recording.
fn unfinished(scratch: &Scratch, name: &str, events: u64) {
    let mut synthetic = Synthetic::create(&scratch.file(name)).unwrap();
    for n in 0..events {
        let kind = Kind::SoftirqEntry { softirq: 1 };
        synthetic.push(&Event { time: 1_000 + n, cpu: 0, by: 0, kind }).unwrap();
    }
    synthetic.finish().unwrap();
}

fn run(scratch: &Scratch, arguments: &[&str]) -> (String, Option<i32>) {
    let output = punctual(&[&["trace", "convert"], arguments].concat())
        .current_dir(&scratch.0)
        .output_within(TEST_LIMIT)
        .unwrap();
    (text(&output.stderr), output.status.code())
}

#[test]
fn finishes_interrupted_recording() {
    let scratch = Scratch::new("convert");
    unfinished(&scratch, "t.dat.raw", 10_000);
    let (err, code) = run(&scratch, &["t.dat.raw", "-o", "copy.dat"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("punctual trace report copy.dat") && scratch.file("t.dat.raw").exists(), "{err}");
    let (err, code) = run(&scratch, &["t.dat.raw", "--remove"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!scratch.file("t.dat.raw").exists());
    let [copy, moved] = ["copy.dat", "trace.dat"].map(|name| fs::read(scratch.file(name)).unwrap());
    assert!(copy == moved);
    fs::write(scratch.file("cut.dat"), &copy[..copy.len() - 4_096]).unwrap();
    let (err, code) = run(&scratch, &["cut.dat", "-o", "whole.dat"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("warning: cut.dat: of the data of CPU 0, 4096 bytes are missing"), "{err}");
    let results: Vec<_> = Trace::open(&scratch.file("whole.dat")).unwrap().events().unwrap().collect();
    assert!(results.len() > 9_000 && results.iter().all(Result::is_ok));
}

#[test]
fn names_fix_for_bad_input() {
    let scratch = Scratch::new("bad-convert");
    unfinished(&scratch, "raw", 10);
    assert_eq!(run(&scratch, &["raw", "-o", "t.dat"]).1, Some(0));
    let _listener = UnixListener::bind(scratch.file("socket")).unwrap();
    std::fs::write(scratch.file("junk"), "junk").unwrap();
    for (arguments, code, message) in [
        (&["missing"][..], 2, "missing: No such file or directory (os error 2); give a trace.dat"),
        (&["junk"], 2, "junk: byte 0: this is neither a trace.dat nor a perf.data; give a file"),
        (&["t.dat", "-o", "./t.dat"], 2, "this is the input"),
        (&["t.dat", "--remove"], 2, "t.dat is not a directory"),
        (&["."], 2, ".: this directory contains no recording; give the one with `events`"),
        (&["raw", "-o", "/no/such/place"], 2, "; give a file in an existing directory"),
        (&["raw", "-o", "raw"], 2, "--output raw: is a directory; give a file"),
        (&["raw", "-o", "socket"], 2, "--output socket: not a regular file"),
    ] {
        let (err, found) = run(&scratch, arguments);
        assert!(found == Some(code) && err.contains(message), "{arguments:?}: {err}");
    }
}

/// On a disk with room for the recording and a little more.
#[test]
fn needs_no_space_for_second_copy() {
    let scratch = Scratch::new("small-disk");
    unfinished(&scratch, "t.dat.raw", 1_000_000);
    let size: u64 = fs::metadata(scratch.file("t.dat.raw/per_cpu/cpu0/trace_pipe_raw")).unwrap().len();
    assert!(size > 15 << 20);
    let (place, program) = (scratch.0.display(), program());
    let script = format!(
        "mkdir {place}/disk && mount -t tmpfs -o size={}k none {place}/disk && cd {place}/disk || exit 99
         cp -r ../t.dat.raw . || exit 99
         echo ready
         {} trace convert t.dat.raw --remove -o t.dat || exit 1
         cp t.dat ..",
        (size >> 10) + (9 << 10),
        program.display()
    );
    let output = match Command::new("unshare").args(["-m", "sh", "-c", &script]).output_within(TEST_LIMIT) {
        Ok(output) if output.stdout == b"ready\n" => output,
        other => return skip(Need::MountNamespace, format_args!("a full disk: {other:?}")),
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let events = Trace::open(&scratch.file("t.dat")).unwrap().events().unwrap();
    assert_eq!(events.filter(|event| event.is_ok()).count(), 1_000_000);
}
