//! Standard output that is unwritable or has no reader: an error if output is lost, and never a
//! panic.

#[path = "../../../punctual/tests/support/tracefs.rs"]
mod tracefs;
/// Traces written by hand.
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use punctual_process::child::{BoundedChild, TEST_LIMIT};

use crate::support::{Scratch, program, punctual, text};
use crate::traces::{IDLE, Script, task};
use punctual_trace::event::SwitchOut;
use punctual_trace::write::{dat, synthetic::Synthetic};
use test_skip::{Need, skip};

/// A machine without findings.
const FIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../punctual-isolate/tests/machines/prepared.txt");

/// Commands that print and end soon. `trace report` reads `t.dat`.
const PRINTING: [&[&str]; 12] = [
    &["--help"],
    &["--version"],
    &["help", "trace", "report"],
    &["bench", "rtos", "--only", "thread switch", "--samples", "1"],
    &["trace", "report", "t.dat"],
    &["trace", "report", "t.dat", "--csv", "-"],
    &["trace", "report", "t.dat", "--perfetto", "-"],
    &["trace", "report", "t.dat", "--html", "-"],
    &["trace", "report", "t.dat", "--json"],
    &["doctor", "--json", "--machine", FIT],
    &["isolate", "boot", "--cpus", "1"],
    &["help", "rta"],
];

/// Commands that need the kernel's tracing.
const WATCHING: [&[&str]; 3] = [
    &["trace", "watch", "--task", "*", "--every", "10ms", "--duration", "200ms"],
    &["trace", "watch", "--task", "*", "--every", "10ms", "--json", "--", "sleep", "0.2"],
    &["trace", "record", "-o", "recorded.dat", "--duration", "50ms"],
];

/// Creates a directory with `t.dat`, whose output job by job exceeds a pipe's capacity.
fn place(name: &str) -> Scratch {
    place_with(name, 2_000)
}

/// Creates a directory with `t.dat` of `jobs` jobs.
fn place_with(name: &str, jobs: u64) -> Scratch {
    let scratch = Scratch::new(name);
    write_trace(&scratch, jobs);
    scratch
}

/// Writes `t.dat`, and the directory of an unfinished recording that it is made of.
pub(crate) fn write_trace(scratch: &Scratch, jobs: u64) {
    let mut script = Script::new();
    for job in 0..jobs {
        let t = 1_000_000 + job * 10_000;
        script.waking(t, 0, task(838, 60), 0).switch(t + 10, 0, SwitchOut::Runnable, task(838, 60));
        script.switch(t + 1_000, 0, SwitchOut::Sleeping, IDLE);
    }
    let directory = scratch.file("t.dat.raw");
    let mut synthetic = Synthetic::create(&directory).unwrap();
    script.events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    dat::write(&directory, &scratch.file("t.dat")).unwrap();
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into()
}

/// Returns a pipe without a reader.
fn unread() -> Stdio {
    std::io::pipe().expect("pipes can be made").1.into()
}

fn start(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = punctual(arguments);
    command.current_dir(&scratch.0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end, which must not be a panic.
#[track_caller]
fn end(mut command: Command) -> (String, Option<i32>) {
    let child = command.spawn().expect("the program can be started");
    let Output { stderr, status, .. } = child.output_within(TEST_LIMIT).expect("it ends");
    let printed = text(&stderr);
    assert!(
        !printed.contains("panicked") && !matches!(status.code(), Some(101) | None),
        "{command:?}: {printed}"
    );
    (printed, status.code())
}

#[test]
fn reports_full_disk() {
    let scratch = place("output-full");
    for arguments in PRINTING {
        let mut command = start(&scratch, arguments);
        let (printed, code) = end({
            command.stdout(full());
            command
        });
        assert_eq!(code, Some(1), "{arguments:?}: {printed}");
        let complaints = printed.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
        assert_eq!(complaints.len(), 1, "{arguments:?}: {printed}");
        assert!(complaints[0].contains("No space left on device"), "{arguments:?}: {printed}");
    }
}

#[test]
fn ends_quietly_when_reader_goes_away() {
    let scratch = place("output-unread");
    for arguments in PRINTING {
        let mut command = start(&scratch, arguments);
        let (printed, code) = end({
            command.stdout(unread());
            command
        });
        assert_eq!(code, Some(0), "{arguments:?}: {printed}");
        assert!(!printed.contains("error"), "{arguments:?}: {printed}");
    }
}

/// Like `| head -1`.
#[test]
fn ends_quietly_when_reader_takes_one_line() {
    let scratch = place("output-head");
    for arguments in PRINTING {
        let mut child = start(&scratch, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut line = Vec::new();
        let out = child.stdout.take().expect("it is piped");
        // It is closed after the first line.
        BufReader::with_capacity(1, out).read_until(b'\n', &mut line).expect("a pipe can be read");
        assert!(!line.is_empty(), "{arguments:?}");
        let output = child.output_within(TEST_LIMIT).expect("it ends");
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {printed}");
        assert!(!printed.contains("panicked") && !printed.contains("error"), "{arguments:?}: {printed}");
    }
}

/// `>&-` and `2>&-`: the first file opened after that would become standard output.
#[test]
fn never_panics_with_closed_streams() {
    let scratch = place("output-closed");
    for arguments in PRINTING {
        for closed in [">&-", "2>&-", "<&- >&- 2>&-"] {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("exec \"$0\" \"$@\" {closed}")]).arg(program()).args(arguments);
            shell.current_dir(&scratch.0);
            assert_eq!(end(shell).1, Some(0), "{arguments:?} {closed}");
        }
    }
}

#[test]
fn never_panics_without_standard_streams() {
    let scratch = place("output-mute");
    // Standard error does not affect the result.
    for arguments in PRINTING {
        let mut command = start(&scratch, arguments);
        command.stdout(Stdio::null()).stderr(full());
        assert_eq!(end(command).1, Some(0), "{arguments:?}");
        let mut command = start(&scratch, arguments);
        command.stdout(full()).stderr(full());
        assert_eq!(end(command).1, Some(1), "{arguments:?}");
    }
    let wrong: [(&[&str], i32); 5] = [
        (&["--no-such-option"], 2),
        (&[], 2),
        (&["bench", "--samples", "0"], 2),
        (&["trace", "report", "missing.dat"], 2),
        (&["trace", "watch", "--stop"], 2),
    ];
    for (arguments, code) in wrong {
        for stderr in [full, unread] {
            let mut command = start(&scratch, arguments);
            command.stdout(full()).stderr(stderr());
            assert_eq!(end(command).1, Some(code), "{arguments:?}");
        }
    }
}

#[test]
fn stops_measuring_at_broken_pipe() {
    let scratch = Scratch::new("output-bench");
    let arguments = ["bench", "rtos", "behavior", "--samples", "1"];
    let arguments = [&arguments[..2], &arguments[3..]].concat();
    for (stdout, code) in [(unread(), 0), (full(), 1)] {
        let mut command = start(&scratch, &arguments);
        command.stdout(stdout);
        let (printed, found) = end(command);
        assert_eq!(found, Some(code), "{printed}");
        // Out of more than twenty.
        assert!(printed.lines().filter(|line| line.starts_with("rtos ")).count() <= 1, "{printed}");
    }
    // Unless the results also go elsewhere.
    let mut command =
        start(&scratch, &[&arguments[..], &["--only", "thread switch", "--json=b.json"]].concat());
    command.stdout(unread());
    let (printed, code) = end(command);
    assert_eq!(code, Some(0), "{printed}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(scratch.file("b.json")).unwrap()).unwrap();
    assert_eq!(json["interrupted"], false);
}

#[test]
fn reports_unwritable_file() {
    // So few jobs that their output is only written when the file ends.
    let scratch = place_with("output-files", 3);
    let bench = ["bench", "rtos", "--only", "thread switch", "--samples", "1"];
    let files = ["--json=/dev/full", "--html=/dev/full"].map(|flag| [&bench[..], &[flag]].concat());
    let report = ["--csv=/dev/full", "--json=/dev/full", "--perfetto=/dev/full", "--html=/dev/full"]
        .map(|flag| vec!["trace", "report", "t.dat", flag]);
    for arguments in files.iter().chain(&report) {
        let (printed, code) = end(start(&scratch, arguments));
        assert_eq!(code, Some(1), "{arguments:?}: {printed}");
        assert!(printed.contains("/dev/full: No space left on device"), "{arguments:?}: {printed}");
    }
}

#[test]
fn keeps_writing_files_when_reader_goes_away() {
    let scratch = place("output-beside");
    let mut alone = start(&scratch, &["trace", "report", "t.dat", "--csv", "alone.csv"]);
    alone.stdout(Stdio::null());
    assert_eq!(end(alone).1, Some(0));
    let mut beside = start(&scratch, &["trace", "report", "t.dat", "--json", "--csv", "beside.csv"]);
    beside.stdout(unread());
    let (printed, code) = end(beside);
    assert_eq!((printed.as_str(), code), ("", Some(0)));
    let [alone, beside] =
        ["alone.csv", "beside.csv"].map(|name| fs::read_to_string(scratch.file(name)).unwrap());
    assert_eq!(alone.lines().count(), 2_001);
    assert!(alone == beside, "{} lines", beside.lines().count());
}

#[test]
fn ends_watch_and_record_without_panic() {
    let scratch = Scratch::new("output-watch");
    if let Err(why) = tracefs::enter() {
        return skip(Need::Tracefs, why);
    }
    for arguments in WATCHING {
        let prints = arguments[1] == "watch";
        for (stdout, code) in [(full(), if prints { 1 } else { 0 }), (unread(), 0)] {
            let mut command = start(&scratch, arguments);
            command.stdout(stdout);
            let (printed, found) = end(command);
            assert_eq!(found, Some(code), "{arguments:?}: {printed}");
            let complains = printed.contains("error: standard output: No space left on device");
            assert_eq!(complains, code == 1, "{arguments:?}: {printed}");
        }
        let mut command = start(&scratch, arguments);
        command.stdout(Stdio::null()).stderr(full());
        assert_eq!(end(command).1, Some(0), "{arguments:?}");
    }
    // The command is ended when its output has no reader, without SIGTERM's status 143.
    let mut command =
        start(&scratch, &["trace", "watch", "--task", "*", "--every", "10ms", "--", "sleep", "1000"]);
    command.stdout(unread());
    let (printed, code) = end(command);
    assert_eq!(code, Some(0), "{printed}");
}
