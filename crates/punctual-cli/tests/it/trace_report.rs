//! `punctual trace report` as a user calls it, on traces with a known result and on other files.

/// Traces written by hand.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};
use crate::traces::{IDLE, Script, task, worked};
use punctual_trace::event::{Comm, Kind, SwitchOut};
use punctual_trace::write::{dat, synthetic::Synthetic};
use xtask_support::golden;
use xtask_support::schema::Schema;

/// Writes the trace.dat of a script.
fn file(scratch: &Scratch, name: &str, script: &Script) -> PathBuf {
    let (directory, file) = (scratch.file(&format!("{name}.raw")), scratch.file(name));
    let mut synthetic = Synthetic::create(&directory).unwrap();
    synthetic.name(838, "pi");
    synthetic.name(839, "pi");
    synthetic.name(7, "worker");
    script.events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    dat::write(&directory, &file).unwrap();
    file
}

/// Returns its output and its error output, with the status.
fn report(directory: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = punctual(&[&["trace", "report"], arguments].concat())
        .current_dir(directory)
        .output_within(TEST_LIMIT)
        .unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

fn expect(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if let Some(difference) = golden::difference(&path, found) {
        panic!("{difference}");
    }
}

/// The published numbers, to the nanosecond in the files and to three digits in the tables.
#[test]
fn decomposes_worked_jobs_of_paper() {
    let scratch = Scratch::new("worked");
    file(&scratch, "alone.dat", &worked::activation_without_concurrence());
    file(&scratch, "concurrent.dat", &worked::concurrent_activation());
    for (trace, expected) in [("alone.dat", "alone.txt"), ("concurrent.dat", "concurrent.txt")] {
        let (out, err, code) = report(&scratch.0, &[trace]);
        assert_eq!((err.as_str(), code), ("", 0));
        expect(expected, &out);
        assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    }
    let files = ["--csv", "jobs.csv", "--json=jobs.json", "--perfetto", "jobs.perfetto"];
    let (out, err, code) = report(&scratch.0, &[&["concurrent.dat", "--task", "839"], &files[..]].concat());
    assert_eq!((err.as_str(), code), ("", 0));
    assert!(out.ends_with("\nwritten: jobs.csv\nwritten: jobs.json\nwritten: jobs.perfetto\n"), "{out}");
    assert!(out.contains("pi/839") && !out.contains("pi/838, "), "{out}");
    let json = fs::read_to_string(scratch.file("jobs.json")).unwrap();
    let jobs: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [job] = &jobs[..] else { panic!("{json}") };
    let terms =
        ["R", "J", "SS", "W", "B", "I", "C"].map(|term| job["terms"][term]["max_ns"].as_u64().unwrap());
    assert_eq!(terms, [448_573, 64_574, 21_517, 383_999, 178_545, 0, 183_937]);
    assert_eq!(fs::read_to_string(scratch.file("jobs.csv")).unwrap().lines().count(), 2);
    assert!(fs::metadata(scratch.file("jobs.perfetto")).unwrap().len() > 500);
}

/// Wake-ups and switches alone: the recording does not show other events.
#[test]
fn lists_missing_events_before_first_table() {
    let scratch = Scratch::new("missing");
    let directory = scratch.file("sched.raw");
    let mut synthetic = Synthetic::create(&directory).unwrap();
    synthetic.recorded(["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup"]).unwrap();
    let script = worked::activation_without_concurrence();
    script.events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    dat::write(&directory, &scratch.file("sched.dat")).unwrap();

    let files = ["--csv", "jobs.csv", "--html", "page.html"];
    let (out, _, code) = report(&scratch.0, &[&["sched.dat"], &files[..]].concat());
    assert_eq!(code, 0, "{out}");
    let (missing, table) = (out.find("futex calls: a wait"), out.find("response time"));
    assert!(missing.is_some() && missing < table, "{out}");
    let line = |letter: &str| out.lines().find(|line| line.starts_with(&format!("  {letter} "))).unwrap();
    // The apparent release may have been the end of a wait, so only W is known of R.
    assert!(line("R ").contains('≥') && line("R ").ends_with("at least"), "{out}");
    assert!(line("J ").contains('–') && line("J ").ends_with("unknown"), "{out}");
    assert!(line("W ").contains('≥') && line("W ").ends_with("at least"), "{out}");
    assert!(line("B ").contains('–') && line("B ").ends_with("unknown"), "{out}");
    assert!(!out.contains("it waited for no lock"), "{out}");
    let csv = fs::read_to_string(scratch.file("jobs.csv")).unwrap();
    let columns: Vec<_> = csv.lines().next().unwrap().split(',').collect();
    let job: Vec<_> = csv.lines().nth(1).unwrap().split(',').collect();
    let field = |name| job[columns.iter().position(|column| *column == name).unwrap()];
    assert_eq!((field("r_min_ns"), field("r_max_ns")), (field("w_min_ns"), ""));
    assert_eq!((field("w_max_ns"), field("w_min_ns").is_empty()), ("", false));
    assert_eq!((field("b_min_ns"), field("b_max_ns")), ("", ""));
    let page = fs::read_to_string(scratch.file("page.html")).unwrap();
    assert!(page.find("futex calls: a wait") < page.find("response time"));

    // Unless the user knows that there are no such waits.
    let (out, _, _) = report(&scratch.0, &["sched.dat", "--futex", "suspend"]);
    let response = out.lines().find(|line| line.starts_with("  R ")).unwrap();
    assert!(response.contains("≥ 100") && response.ends_with("at least"), "{out}");
    assert!(!out.contains("futex calls: a wait"), "{out}");
}

/// A thread with a different name at first, and a recording with lost events: its figures do not
/// depend on how it is selected.
#[test]
fn reports_same_figures_for_every_selection() {
    let scratch = Scratch::new("chosen");
    let directory = scratch.file("lossy.raw");
    let (worker, other) = (task(7, 120), task(5, 120));
    let mut script = Script::new();
    script.at(500, 0, Kind::IrqEntry { irq: 1 }).at(600, 0, Kind::IrqExit { irq: 1 });
    script.at(700, 1, Kind::IrqEntry { irq: 2 }).at(800, 1, Kind::IrqExit { irq: 2 });
    for (job, before) in [true, true, false, false, false, false].into_iter().enumerate() {
        let t = (job as u64 + 1) * 100_000;
        script.waking(t, 0, worker, 0).switch(t + 3_000, 0, SwitchOut::Runnable, worker);
        if before {
            script.waking(t + 5_000, 0, other, 1).switch(t + 7_000, 1, SwitchOut::Runnable, other);
            script.switch(t + 9_000, 1, SwitchOut::Sleeping, IDLE);
        }
        script.switch(t + 20_000 + job as u64, 0, SwitchOut::Sleeping, IDLE);
        if job == 1 {
            // More than one batch: names are known from the batch with their events on.
            for n in 0..3_000 {
                let at = t + 22_000 + 8 * n;
                script.at(at, 0, Kind::IrqEntry { irq: 1 }).at(at + 4, 0, Kind::IrqExit { irq: 1 });
            }
        }
        if job == 1 || job == 3 {
            script.at(t + 50_000, 1, Kind::Lost { count: 9 });
            script.at(t + 60_000, 1, Kind::IrqEntry { irq: 2 }).at(t + 61_000, 1, Kind::IrqExit { irq: 2 });
        }
    }
    let mut synthetic = Synthetic::create(&directory).unwrap();
    for event in &script.events {
        synthetic.name(7, if event.time < 290_000 { "sh" } else { "worker" });
        synthetic.push(event).unwrap();
    }
    synthetic.finish().unwrap();
    // The kernel's list of names has room for few threads; its names would be known before the
    // first event.
    fs::write(directory.join("saved_cmdlines"), "").unwrap();
    dat::write(&directory, &scratch.file("lossy.dat")).unwrap();
    let table = |choice: &[&str]| {
        let (out, _, code) = report(&scratch.0, &[&["lossy.dat"], choice].concat());
        assert_eq!(code, 0, "{out}");
        let is_of = |part: &&str| part.contains("worker/7, ") && part.contains("  R  response");
        out.split("\n\n").find(is_of).unwrap_or_else(|| panic!("{choice:?}: {out}")).trim_end().to_owned()
    };
    let all = table(&["--task", "*"]);
    assert!(all.contains("flawed"), "{all}");
    for choice in [["--task", "worker"], ["--task", "wor*"], ["--task", "7"], ["--task", "worker/7"]] {
        assert_eq!(table(&choice), all, "{choice:?}");
    }
}

#[test]
fn writes_lines_and_columns_as_documented() {
    let scratch = Scratch::new("schema");
    file(&scratch, "concurrent.dat", &worked::concurrent_activation());
    let worker = task(7, 10);
    let mut script = Script::new();
    script.waking(1_000, 0, worker, 0).switch(2_000, 0, SwitchOut::Runnable, worker);
    script.at(3_000, 0, Kind::FutexEnter { word: 0x1000, operation: 128, value: 0 });
    script.switch(4_000, 0, SwitchOut::Sleeping, IDLE).waking(9_000, 0, worker, 0);
    script.switch(9_500, 0, SwitchOut::Runnable, worker).at(9_900, 0, Kind::IrqEntry { irq: 3 });
    file(&scratch, "open.dat", &script);
    let schema = Schema::new(include_str!("../../../../docs/trace-schema.json"));
    for (trace, jobs) in [("concurrent.dat", 2), ("open.dat", 3)] {
        let (out, _, code) = report(&scratch.0, &[trace, "--json"]);
        assert!(code == 0 && out.lines().count() >= jobs - 1, "{out}");
        for line in out.lines() {
            schema.assert(&serde_json::from_str(line).unwrap());
        }
    }
    let (csv, _, _) = report(&scratch.0, &["concurrent.dat", "--csv", "-"]);
    let columns = punctual_trace_report::export::columns();
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    assert_eq!(csv.lines().next().unwrap(), names.join(","));
}

#[test]
fn help_lists_csv_columns() {
    let scratch = Scratch::new("csv-help");
    let (help, _, code) = report(&scratch.0, &["--help"]);
    assert_eq!(code, 0);
    for column in punctual_trace_report::export::columns() {
        assert!(help.contains(&format!("  {}: ", column.name)), "{}: {help}", column.name);
    }
}

#[test]
fn names_unfinished_jobs() {
    let scratch = Scratch::new("unended");
    let worker = task(7, 10);
    let mut script = Script::new();
    script.waking(1_000, 0, worker, 0).switch(2_000, 0, SwitchOut::Runnable, worker);
    script.at(5_000, 0, Kind::FutexEnter { word: 0x1000, operation: 6 | 128, value: 0 });
    script.switch(6_000, 0, SwitchOut::Sleeping, IDLE).at(900_001_000, 0, Kind::IrqEntry { irq: 3 });
    file(&scratch, "deadlock.dat", &script);
    let (out, err, code) =
        report(&scratch.0, &["deadlock.dat", "--deadline", "worker=500us", "--html", "page.html"]);
    assert!(code == 0 && err.is_empty(), "{err}");
    assert!(out.contains("worker/7 had not ended"), "{out}");
    assert!(out.contains("took at least 900 ms") && out.contains("blocked on futex 0x1000"), "{out}");
    let line = out.lines().find(|line| line.starts_with("worker/7  ")).unwrap();
    assert!(line.contains(" 1 ") && line.ends_with("1 not ended"), "it counts as a miss: {line}");
    assert!(fs::read_to_string(scratch.file("page.html")).unwrap().contains("A job had not ended"));
}

#[test]
fn counts_misses_and_selects_tasks() {
    let scratch = Scratch::new("deadlines");
    file(&scratch, "t.dat", &worked::concurrent_activation());
    let (out, _, code) = report(
        &scratch.0,
        &["t.dat", "--deadline", "pi/839=448us", "--deadline", "838=366us", "--worst", "0"],
    );
    assert_eq!(code, 0);
    assert!(out.contains("pi/839, priority 49, 1 job, 1 deadline missed\n"), "{out}");
    assert!(out.contains("pi/838, priority 39, 1 job\n"), "{out}");
    assert!(!out.contains("longest job"), "{out}");
    // One deadline for every task without its own.
    let (out, ..) = report(&scratch.0, &["t.dat", "--deadline", "100us", "--deadline", "838=366us"]);
    assert!(out.contains("pi/839, priority 49, 1 job, 1 deadline missed\n"), "{out}");
    assert!(out.contains("pi/838, priority 39, 1 job\n"), "{out}");
    // As in the tables, by name, by prefix.
    for (name, tasks) in [("pi/838", 1), ("838", 1), ("pi", 2), ("p*", 2)] {
        let (out, err, code) = report(&scratch.0, &["t.dat", "--task", name, "--csv", "-"]);
        assert_eq!((err.as_str(), code, out.lines().count()), ("", 0, 1 + tasks), "{name}: {out}");
    }
}

/// Jobs marked by an app have the names of their tasks, on any thread.
#[test]
fn names_tasks_of_app() {
    let scratch = Scratch::new("marks");
    let worker = task(7, 120);
    let mut script = Script::new();
    script.waking(100_000, 0, worker, 0).switch(110_000, 0, SwitchOut::Runnable, worker);
    script.at(120_000, 0, Kind::JobStart { task: 3, released: 90_000 });
    script.at(200_000, 0, Kind::JobEnd { task: 3 }).switch(210_000, 0, SwitchOut::Sleeping, IDLE);
    file(&scratch, "t.dat", &script);
    let (out, err, code) = report(&scratch.0, &["t.dat"]);
    assert_eq!((err.as_str(), code), ("", 0));
    assert!(out.contains("\ntask 3, nice 0, 1 job\n"), "{out}");
    let (out, ..) = report(&scratch.0, &["t.dat", "--task", "worker", "--csv", "-"]);
    assert_eq!(out.lines().count(), 2, "{out}");
}

#[test]
fn reports_losses() {
    let scratch = Scratch::new("losses");
    let mut script = worked::activation_without_concurrence();
    script.at(1_200_000, 0, Kind::Lost { count: 3 });
    script.waking(1_300_000, 0, task(838, 60), 0);
    file(&scratch, "t.dat", &script);
    let (_, err, _) = report(&scratch.0, &["t.dat"]);
    assert!(err.contains("LOST: events are missing in 1 place;") && err.contains("--buffer"), "{err}");
}

#[test]
fn names_fix_for_bad_input() {
    let scratch = Scratch::new("bad-report");
    let good = file(&scratch, "good.dat", &worked::concurrent_activation());
    let bytes = fs::read(&good).unwrap();
    fs::write(scratch.file("short.dat"), &bytes[..bytes.len() / 3]).unwrap();
    // An impossible length in a section of the file.
    let mut damaged = bytes.clone();
    damaged[40..60].fill(0xff);
    fs::write(scratch.file("damaged.dat"), damaged).unwrap();
    fs::write(scratch.file("text"), "no trace").unwrap();
    file(&scratch, "idle.dat", Script::new().at(1_000, 0, Kind::IrqEntry { irq: 1 }));
    Synthetic::create(&scratch.file("empty")).unwrap().finish().unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&[], 2, "<FILE|DIR>"),
        (&["missing.dat"], 2, "missing.dat: No such file or directory (os error 2); give a trace.dat"),
        (
            &["text"],
            2,
            "text: byte 0: this is neither a trace.dat nor a perf.data; give a file of `punctual \
             trace record`",
        ),
        (&["."], 2, ".: this directory contains no recording; give the one with `events`"),
        (&["short.dat"], 2, "short.dat"),
        (&["damaged.dat"], 2, "damaged.dat"),
        (&["empty"], 2, "empty: there are no scheduler events in it; record again"),
        (&["idle.dat"], 1, "has no job of a real-time thread or Punctual task"),
        (&["idle.dat", "--task", "*"], 1, "record for longer"),
        (&["good.dat", "--task", "nobody"], 1, "no job of a task or thread `nobody`; --task '*' shows"),
        (&["good.dat", "--deadline", "nobody=5us"], 1, "no job of a task or thread `nobody`"),
        (&["good.dat", "--deadline", "pi=5"], 2, "has no unit"),
        (&["good.dat", "--futex", "maybe"], 2, "mutexes-block"),
        (&["good.dat", "--worst", "many"], 2, "--worst"),
        (&["good.dat", "--json=good.dat"], 2, "--json good.dat: this is the trace"),
        (&["good.dat", "--csv", "a", "--json=./a"], 2, "--json ./a: this is the trace or another output"),
        (&["good.dat", "--csv", "-", "--json"], 2, "another format already goes to standard output"),
        (&["good.dat", "--csv", "/no/such/place"], 2, "; give a file in an existing directory"),
        (&["good.dat", "--html", "empty"], 2, "--html empty: is a directory; give a file"),
    ];
    for (arguments, code, message) in cases {
        let (out, err, found) = report(&scratch.0, arguments);
        assert_eq!(found, *code, "{arguments:?}: {out}{err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }
    assert_eq!(fs::read(&good).unwrap(), bytes, "what is read is never written");
    assert!(!scratch.0.join("a").exists(), "refused outputs leave nothing behind");
    fs::write(scratch.0.join("old"), "kept").unwrap();
    let refused = report(&scratch.0, &["good.dat", "--csv", "old", "--json=a", "--html", "/no/such/place"]);
    assert_eq!(refused.2, 2, "{}", refused.1);
    assert_eq!(fs::read_to_string(scratch.0.join("old")).unwrap(), "kept");
    assert!(!scratch.0.join("a").exists());
    assert_eq!(report(&scratch.0, &["good.dat", "--csv", "old"]).2, 0);
    let replaced = fs::read_to_string(scratch.0.join("old")).unwrap();
    assert!(replaced.len() > 100 && !replaced.contains("kept"), "{replaced}");
    let null = ["good.dat", "--csv", "/dev/null", "--json=/dev/null", "--perfetto", "/dev/null"];
    assert_eq!(report(&scratch.0, &null).2, 0, "a device is not a file that two outputs would spoil");
    if Path::new("/dev/full").exists() {
        let (_, err, code) = report(&scratch.0, &["good.dat", "--json=/dev/full"]);
        assert_eq!(code, 1);
        assert!(err.contains("/dev/full: No space left on device") && err.contains("not complete"), "{err}");
    }
}

/// Like `| head`.
#[test]
fn ends_quietly_when_reader_stops() {
    let scratch = Scratch::new("pipe");
    let mut script = Script::new();
    for job in 0..2_000 {
        let t = 1_000_000 + job * 10_000;
        script.waking(t, 0, task(838, 60), 0).switch(t + 10, 0, SwitchOut::Runnable, task(838, 60));
        script.switch(t + 1_000, 0, SwitchOut::Sleeping, IDLE);
    }
    let file = file(&scratch, "t.dat", &script);
    for format in ["--json", "--csv -"] {
        let program = env!("CARGO_BIN_EXE_punctual");
        let script = format!(
            "{program} trace report {} {format} | head -n 1 | wc -l; exit ${{PIPESTATUS[0]}}",
            file.display()
        );
        let output = Command::new("bash")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .output_within(TEST_LIMIT)
            .unwrap();
        assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).trim()), ("", "1"), "{format}");
        assert!(output.status.success(), "{format}: {:?}", output.status);
    }
    // Neither is a missing reader of its errors.
    let mut nobody = punctual(&["trace", "report", "missing.dat"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(nobody.stderr(writer).status_within(TEST_LIMIT).unwrap().code(), Some(2));
}

/// A longer recording would not help.
#[test]
fn error_names_unreadable_format() {
    let scratch = Scratch::new("formats");
    file(&scratch, "good.dat", &worked::concurrent_activation());
    let format = scratch.file("good.dat.raw/events/sched/sched_switch/format");
    let text = fs::read_to_string(&format).unwrap();
    for (damaged, why, status) in [
        (text.replace("offset:", "place:"), "the format of sched:sched_switch cannot be read", 1),
        (text.replace("next_pid", "next_number"), "next_pid", 0),
    ] {
        fs::write(&format, damaged).unwrap();
        let (out, err, code) = report(&scratch.0, &["good.dat.raw", "--task", "*"]);
        assert_eq!(code, status, "{out}{err}");
        assert!(err.contains(why) && !err.contains("for longer"), "{err}");
        dat::write(&scratch.file("good.dat.raw"), &scratch.file("bad.dat")).unwrap();
        let (out, err, code) = report(&scratch.0, &["bad.dat", "--task", "*"]);
        assert_eq!(code, status, "{out}{err}");
        assert!(err.contains(why) && !err.contains("for longer"), "{err}");
    }
}

/// For any length: without readable switches, their threads are unknown.
#[test]
fn does_not_ask_to_record_unreadable_events() {
    let scratch = Scratch::new("unreadable");
    let mut script = Script::new();
    script.switch(1_000, 0, SwitchOut::Runnable, task(838, 60)).switch(2_000, 0, SwitchOut::Sleeping, IDLE);
    file(&scratch, "switches.dat", &script);
    let format = scratch.file("switches.dat.raw/events/sched/sched_switch/format");
    fs::write(&format, fs::read_to_string(&format).unwrap().replace("offset:", "place:")).unwrap();
    let (out, err, code) = report(&scratch.0, &["switches.dat.raw", "--task", "*"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("some of its events cannot be read") && !err.contains("for longer"), "{err}");
}

/// For any length: without switches there are no jobs.
#[test]
fn reports_missing_switches() {
    let scratch = Scratch::new("no-switches");
    let mut synthetic = Synthetic::create(&scratch.file("raw")).unwrap();
    synthetic.recorded(["irq:irq_handler_entry", "irq:irq_handler_exit"]).unwrap();
    let mut script = Script::new();
    script.at(1_000, 0, Kind::IrqEntry { irq: 3 }).at(2_000, 0, Kind::IrqExit { irq: 3 });
    script.events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    let (out, err, code) = report(&scratch.0, &["raw"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("context switches: there are no jobs of threads"), "{out}");
    assert!(err.contains("record again with at least sched_switch") && !err.contains("for longer"), "{err}");
}

/// Any user can choose the name of a thread.
#[test]
fn prints_no_terminal_escapes_and_no_line_breaks_of_names() {
    let scratch = Scratch::new("escapes");
    let thread = task(838, 60);
    let mut script = Script::new();
    script.waking(1_000, 0, thread, 0).switch(2_000, 0, SwitchOut::Runnable, thread);
    script.switch(3_000, 0, SwitchOut::Sleeping, IDLE);
    let mut synthetic = Synthetic::create(&scratch.file("raw")).unwrap();
    synthetic.name(838, "a\x1b[2J\n7 b\r,\u{202e}");
    script.events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    fs::write(scratch.file("raw/uname"), "Linux \x1b[31m").unwrap();
    fs::write(scratch.file("raw/saved_cmdlines"), "838 \x1b[2J\n").unwrap();
    let outputs = [&["raw"][..], &["raw", "--csv", "-"], &["raw", "--json"], &["raw", "--html", "-"]];
    for arguments in outputs.into_iter().chain([&["raw", "--task", "\x1b[2J"][..]]) {
        let (out, err, _) = report(&scratch.0, arguments);
        let active = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!out.contains(active) && !err.contains(active), "{arguments:?}: {out:?} {err:?}");
    }
    for name in ["a\x1b[2J\n7 b\r,\u{202e}", "a\\u{1b}[2J\\n7 b\\r,*", "a*", "838"] {
        let (out, err, code) = report(&scratch.0, &["raw", "--csv", "-", "--task", name]);
        assert_eq!((out.lines().count(), code), (2, 0), "{name:?}: {out}{err}");
        assert!(out.contains(",\"a\\u{1b}[2J\\n7 b\\r,"), "{out}");
    }
}

/// A recording may come from another machine, in a file with any name.
#[test]
fn prints_no_terminal_escapes_of_file_names() {
    let scratch = Scratch::new("file-escapes");
    let name = "\x1b[31ma\nb.dat";
    let threads = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/threads.dat");
    fs::copy(threads, scratch.file(name)).unwrap();
    let commands: [&[&str]; 3] = [
        &["trace", "report", name, "--csv", "\x1b[32m.csv"],
        &["rta", "--trace", name],
        &["check", "--trace", name],
    ];
    for arguments in commands {
        let output = punctual(arguments).current_dir(&scratch.0).output_within(TEST_LIMIT).unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(out.contains("\\u{1b}[31ma\\nb.dat"), "{arguments:?}: {out}{err}");
        assert!(!out.contains(|c: char| c.is_control() && c != '\n'), "{arguments:?}: {out:?}");
    }
}

/// Names change at the event that shows them: of an ID that is reused, and of a thread that renames
/// itself.
#[test]
fn applies_names_of_threads_from_their_events_on() {
    let scratch = Scratch::new("renamed");
    let mut synthetic = Synthetic::create(&scratch.file("raw")).unwrap();
    let mut script = Script::new();
    let run = |script: &mut Script, start: u64, thread, end| {
        script.waking(start, 0, thread, 0).switch(start + 100, 0, SwitchOut::Runnable, thread);
        script.switch(start + 200, 0, end, IDLE);
    };
    let (first, second, renamed) = (task(200, 49), task(200, 29), task(201, 49));
    let name = |script: &mut Script, thread, name| {
        script.at(0, 0, Kind::Named { thread, name: Comm::new(name) });
    };
    name(&mut script, 200, "aaa");
    run(&mut script, 1_000, first, SwitchOut::Sleeping);
    run(&mut script, 2_000, first, SwitchOut::Gone);
    name(&mut script, 200, "sh");
    script.at(3_000, 0, Kind::Wakeup { task: second, cpu: 0, new: true });
    script.switch(3_100, 0, SwitchOut::Runnable, second);
    name(&mut script, 200, "bbb");
    script.switch(3_200, 0, SwitchOut::Sleeping, IDLE);
    run(&mut script, 4_000, second, SwitchOut::Sleeping);
    name(&mut script, 201, "old");
    run(&mut script, 5_000, renamed, SwitchOut::Sleeping);
    name(&mut script, 201, "new");
    run(&mut script, 6_000, renamed, SwitchOut::Sleeping);
    script.events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();

    let (out, err, code) = report(&scratch.0, &["raw", "--csv", "jobs.csv"]);
    assert_eq!((err.as_str(), code), ("", 0));
    for row in ["aaa/200  ", "bbb/200  ", "new/201  "] {
        assert_eq!(out.lines().filter(|line| line.starts_with(row)).count(), 1, "{row}: {out}");
    }
    let names = |csv: &str| -> Vec<String> {
        csv.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().to_owned()).collect()
    };
    let csv = fs::read_to_string(scratch.file("jobs.csv")).unwrap();
    assert_eq!(names(&csv), ["aaa", "aaa", "bbb", "bbb", "old", "new"]);
    for (chosen, expected) in [
        ("aaa", &["aaa", "aaa"][..]),
        ("bbb", &["bbb", "bbb"]),
        ("sh", &["bbb", "bbb"]),
        ("old", &["old", "new"]),
        ("new/201", &["old", "new"]),
        ("old/201", &["old", "new"]),
        ("200", &["aaa", "aaa", "bbb", "bbb"]),
    ] {
        let (out, err, code) = report(&scratch.0, &["raw", "--csv", "-", "--task", chosen]);
        assert_eq!((names(&out), err.as_str(), code), (names_of(expected), "", 0), "{chosen}");
        let (out, err, code) = report(&scratch.0, &["raw", "--task", chosen]);
        assert!(err.is_empty() && code == 0 && out.contains("longest job"), "{chosen}: {out}{err}");
    }
    // A deadline applies to the thread, not to later threads with its ID.
    let (out, _, _) = report(&scratch.0, &["raw", "--deadline", "aaa=50ns"]);
    let missed = |row: &str| {
        let line = out.lines().find(|line| line.starts_with(row)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!([missed("aaa/200  "), missed("bbb/200  ")], ["2", "0"], "{out}");
}

fn names_of(names: &[&str]) -> Vec<String> {
    names.iter().copied().map(str::to_owned).collect()
}

#[test]
fn reports_part_of_recording() {
    let scratch = Scratch::new("part");
    let mut script = Script::new();
    // Jobs that end at 1.001 s, 2.001 s, … 10.001 s.
    for second in 1..=10 {
        let t = second * 1_000_000_000;
        script.waking(t, 0, task(838, 60), 0).switch(t + 10, 0, SwitchOut::Runnable, task(838, 60));
        script.switch(t + 1_000_000, 0, SwitchOut::Sleeping, IDLE);
    }
    file(&scratch, "t.dat", &script);
    let ends = |arguments: &[&str]| {
        let (out, err, code) = report(&scratch.0, &[&["t.dat", "--csv", "-"], arguments].concat());
        assert_eq!((err.as_str(), code), ("", 0), "{arguments:?}");
        let end = |line: &str| line.split(',').nth(15).unwrap().parse::<u64>().unwrap() / 1_000_000_000;
        out.lines().skip(1).map(end).collect::<Vec<_>>()
    };
    assert_eq!(ends(&["--from", "8s"]), [8, 9, 10]);
    assert_eq!(ends(&["--from", "+7s"]), [8, 9, 10], "the first event is at 1 s");
    assert_eq!(ends(&["--to", "3.001s"]), [1, 2, 3]);
    assert_eq!(ends(&["--from", "2.5s", "--to", "+3.5s"]), [3, 4]);
    assert_eq!(ends(&["--from", "-1.5s"]), [9, 10]);
    let (out, err, code) = report(&scratch.0, &["t.dat", "--from", "2.5s", "--to", "+3.5s"]);
    assert_eq!((err.as_str(), code), ("", 0));
    assert!(out.contains("2 jobs") && out.contains("jobs that end from 2.5"), "{out}");
    let (_, err, code) = report(&scratch.0, &["t.dat", "--from", "+60s"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("has no job between --from and --to that") && err.contains("; choose other times"),
        "{err}"
    );
    for wrong in [&["--from", "soon"][..], &["--from", "1"], &["--from", "+3s", "--to", "+2s"]] {
        assert_eq!(report(&scratch.0, &[&["t.dat"], wrong].concat()).2, 2, "{wrong:?}");
    }
}

/// A reader that wakes the worker repeatedly.
fn chained() -> Script {
    let (reader, worker) = (task(838, 40), task(7, 30));
    let mut script = Script::new();
    for n in 1..=5 {
        let t = n * 1_000_000;
        script.waking(t, 0, reader, 0).switch(t + 10_000, 0, SwitchOut::Runnable, reader);
        script.waking(t + 60_000, 0, worker, 0).switch(t + 70_000, 0, SwitchOut::Runnable, worker);
        script.switch(t + 100_000 + n * 1_000, 0, SwitchOut::Sleeping, reader);
        script.switch(t + 200_000, 0, SwitchOut::Sleeping, IDLE);
    }
    script
}

#[test]
fn reports_chains_in_text_json_and_page() {
    let scratch = Scratch::new("chains");
    file(&scratch, "t.dat", &chained());
    for chain in ["pi,worker", "838,7", "auto"] {
        let arguments = ["t.dat", "--chain", chain, "--json=t.json", "--html", "t.html"];
        let (out, err, code) = report(&scratch.0, &arguments);
        assert_eq!((err.as_str(), code), ("", 0));
        let (_, out) = out.split_once("\nchain pi/838 → worker/7, 5 crossings\n").unwrap();
        let row = |name: &str| {
            let line = out.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            line.trim_start()[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(row("pi/838 until it wakes worker/7"), ["60.0", "60.0", "60.0", "60.0", "5"]);
        assert_eq!(row("end to end")[0], "105");
        assert!(out.contains("worker/7 took 45 µs (42 %) to its end"), "{out}");
        let schema = Schema::new(include_str!("../../../../docs/trace-schema.json"));
        let lines = fs::read_to_string(scratch.file("t.json")).unwrap();
        let lines: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().for_each(|line| schema.assert(line));
        let crossings: Vec<_> = lines.iter().filter(|line| line["type"] == "crossing").collect();
        assert_eq!((crossings.len(), &crossings[4]["max_ns"]), (5, &105_000.into()));
        let page = fs::read_to_string(scratch.file("t.html")).unwrap();
        assert!(
            page.contains("<h2>pi/838 → worker/7</h2>")
                && page.contains("Timeline of a crossing that took 105 µs")
        );
    }
    let (_, err, code) = report(&scratch.0, &["t.dat", "--chain", "pi,nobody"]);
    assert!(code == 1 && err.contains("no job of a task or thread `nobody`"), "{err}");
}
