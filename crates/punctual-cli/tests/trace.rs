//! `punctual trace record` and `watch` as a user calls them, on machines with usable tracefs.

mod support;
#[path = "../../punctual/tests/support/tracefs.rs"]
mod tracefs;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use punctual_trace::event::Kind;
use punctual_trace::jobs::{Config, Counters, Decomposer};
use punctual_trace::read::Trace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Scratch, program, punctual, text};
use test_skip::{Need, skip};
use xtask_support::schema::Schema;

/// Environment variable of this program: the thread and the number of jobs to run, instead of
/// testing.
const JOBS: &str = "PUNCTUAL_TEST_JOBS";
/// Returns the name of these threads in one test. It contains the process number, because
/// recordings contain the threads of all processes; the kernel keeps 15 letters.
fn worker(test: &str) -> String {
    format!("{test} {:x}", std::process::id())
}

/// Returns whether this machine permits tracing; if not, prints a notice.
fn can_trace(scratch: &Scratch) -> bool {
    let probe = punctual(&["trace", "record", "--duration", "0s", "-o"])
        .arg(scratch.file("probe"))
        .output_within(TEST_LIMIT)
        .unwrap();
    if !probe.status.success() {
        skip(Need::Tracefs, text(&probe.stderr));
    }
    probe.status.success()
}

/// The same, for a test that does not depend on the recording itself and may mount tracefs.
fn can_mount_and_trace(scratch: &Scratch) -> bool {
    if let Err(why) = tracefs::enter() {
        eprintln!("tracefs cannot be mounted here: {why}");
    }
    can_trace(scratch)
}

/// Returns a command line that ends in this program running jobs.
fn traced(worker: &str, jobs: u32, arguments: &[&str]) -> Command {
    let mut command = punctual(&[&["trace"], arguments, &["--"]].concat());
    command.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "selects_jobs_to_be_traced",
        "--nocapture",
    ]);
    command.env(JOBS, format!("{worker}:{jobs}"));
    command
}

/// Not a test by itself: the traced program. A real-time thread, if permitted, wakes every
/// millisecond.
#[test]
fn selects_jobs_to_be_traced() {
    let Ok(jobs) = std::env::var(JOBS) else { return };
    let (worker, jobs) = jobs.split_once(':').unwrap();
    let jobs: u32 = jobs.parse().unwrap();
    let work = move || {
        let is_real_time = punctual_process::scheduling::set_policy(libc::SCHED_FIFO, 30).is_ok();
        println!("\nready {} {is_real_time}", std::env::var("PUNCTUAL_TRACE").unwrap_or_default());
        (0..jobs).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
    };
    std::thread::Builder::new().name(worker.into()).spawn(work).unwrap().join().unwrap();
    // The harness would end with another one.
    std::process::exit(7);
}

fn run(mut command: Command) -> (String, String, Option<i32>) {
    let Output { stdout, stderr, status } = command.output_within(TEST_LIMIT).unwrap();
    (text(&stdout), text(&stderr), status.code())
}

/// Returns the worker's jobs in a file, after its first sleep.
fn worker_jobs(worker: &str, file: &Path) -> Vec<Value> {
    let (out, err, code) = run({
        let mut report = punctual(&["trace", "report", "--task", worker, "--json"]);
        report.arg(file);
        report
    });
    assert_eq!(code, Some(0), "{err}");
    let jobs: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    jobs.into_iter().filter(|job| job["flaw"].is_null() && job["released_by"] != "new").collect()
}

/// Returns whether the kernel has recorded nearly every switch; prints a notice if not, because
/// then few jobs are complete.
fn whole(file: &Path) -> bool {
    let mut decomposer = Decomposer::new(Config::default());
    for event in Trace::open(file).unwrap().events().unwrap() {
        decomposer.feed(&event.unwrap(), &mut |_| {});
    }
    let Counters { switches, unseen_switches, bounded_switches, .. } = decomposer.counters();
    let unseen_switches = unseen_switches + bounded_switches;
    let whole = unseen_switches * 50 <= switches;
    if !whole {
        let lost = format!("{unseen_switches} of {switches} switches are not in the recording");
        skip(Need::System("a kernel that records every switch"), lost);
    }
    whole
}

/// Returns whether a watch saw no alarm because the kernel omitted switches, and so jobs; prints a
/// notice.
fn too_few_switches(err: &str, code: Option<i32>) -> bool {
    let few = code == Some(7) && err.contains("did not count as lost");
    if few {
        skip(Need::System("a kernel that records every switch"), err);
    }
    few
}

fn assert_clean(scratch: &Scratch, recorder: u32) {
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".raw")), "{left:?}");
    let ours = format!("punctual-{recorder}-");
    let is_ours = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&ours);
    let is_left =
        || fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten().any(is_ours);
    // A recorder of another test may have begun to remove it.
    let begun = Instant::now();
    while is_left() {
        assert!(begun.elapsed() < TEST_LIMIT, "an instance of recorder {recorder} is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn records_command_from_first_instruction_and_returns_its_status() {
    let scratch = Scratch::new("record");
    if !can_trace(&scratch) {
        return;
    }
    let file = scratch.file("trace.dat");
    let recorded = worker("recorded");
    let (out, err, code) = run(traced(&recorded, 50, &["record", "-o", file.to_str().unwrap()]));
    assert_eq!(code, Some(7), "{out}{err}");
    let mark_count =
        out.split_once("\nready ").and_then(|(_, rest)| rest.split_once(' ')).map(|(marks, _)| marks);
    let is_told = mark_count.is_some_and(|marks| marks == "1" || marks.starts_with('/'));
    assert!(is_told, "its output passes through, and it knows that it is traced: {out}");
    assert!(err.contains("trace.dat: ") && err.contains("punctual trace report "), "{err}");
    assert_clean(&scratch, 0);

    if !whole(&file) {
        return;
    }
    let jobs = worker_jobs(&recorded, &file);
    // Each sleep has an end, and the last job ends with the thread. If the host takes the CPU away,
    // a timer can expire before the thread sleeps, and two jobs are one.
    assert!((40..=60).contains(&jobs.len()), "{} jobs", jobs.len());
    for job in &jobs {
        let term = |name: &str, bound: &str| job["terms"][name][bound].as_u64().unwrap();
        // If the kernel omits the switch to the job, a time belongs to J, to SS or to W.
        let slack = term("W", "max_ns") - term("W", "min_ns");
        let both = term("R", "max_ns") + slack;
        assert_eq!(both, term("J", "max_ns") + term("W", "max_ns"), "{job}");
        let others: u64 = ["J", "SS", "B", "I"].map(|name| term(name, "max_ns")).iter().sum();
        assert_eq!(term("C", "min_ns"), both - others, "{job}");
    }
    // Timers are on the trace's clock, so most jobs have a known due time.
    let timed = jobs.iter().filter(|job| job["released_by"] == "timer").count();
    assert!(timed >= jobs.len() / 2, "{timed}");

    if jobs[0]["priority"] == 69 {
        let (out, err, code) = run({
            let mut report = punctual(&["trace", "report"]);
            report.arg(&file);
            report
        });
        // Some kernels occasionally omit a switch.
        assert!(err.is_empty() || err.contains("did not count as lost"), "{err}");
        assert_eq!(code, Some(0));
        assert!(out.contains(&format!("\n{recorded}/")) && out.contains("longest job"), "{out}");
    }
    // The other tool has to read as many events as were recorded.
    let events = Trace::open(&file).unwrap().events().unwrap().filter(|event| event.is_ok()).count();
    assert!(events > 500, "{events}");
}

/// In a buffer of 64 KiB a second of jobs overwrites itself many times.
#[test]
fn keeps_newest_events_only() {
    let scratch = Scratch::new("newest");
    if !can_trace(&scratch) {
        return;
    }
    let file = scratch.file("newest.dat");
    let arguments = ["record", "--newest", "--buffer", "64", "-o", file.to_str().unwrap()];
    let newest = worker("newest");
    let (out, err, code) = run(traced(&newest, 1_500, &arguments));
    assert_eq!(code, Some(7), "{out}{err}");
    assert!(err.contains(": the newest of ") && !err.contains("LOST"), "{err}");
    assert_clean(&scratch, 0);

    let trace = Trace::open(&file).unwrap();
    let lost = |trace: &Trace| punctual_trace::buffer_stats::losses(trace.statistics()).len();
    assert_eq!(lost(&trace), 0, "what was replaced is not missing");
    assert!(trace.statistics().iter().any(|text| text.contains("\nreplaced: ")), "{:?}", trace.statistics());
    let (mut first, mut last, mut gaps) = (BTreeMap::new(), 0, 0);
    for event in trace.events().unwrap() {
        let event = event.unwrap();
        gaps += u32::from(matches!(event.kind, Kind::Lost { .. }));
        first.entry(event.cpu).or_insert(event.time);
        last = event.time;
    }
    assert_eq!(gaps, 0);
    // The program has run for a second and a half; the reach of the buffers depends on other
    // activity.
    assert!(last - first.values().min().unwrap() < 1_400_000_000, "{first:?} to {last}");
    // On a busy machine, other threads have overwritten those of the program.
    let jobs = worker_jobs("*", &file);
    assert!(!whole(&file) || !jobs.is_empty());
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn saves_recording_on_ctrl_c() {
    let scratch = Scratch::new("ctrl-c");
    if !can_trace(&scratch) {
        return;
    }
    let file = scratch.file("trace.dat");
    let mut command = punctual(&["trace", "record", "--events", "irq,timer", "-o", file.to_str().unwrap()]);
    let mut recorder = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "recording, until Ctrl-C\n");
    signal(&recorder, Signal::INT);
    assert_eq!(recorder.status_within(TEST_LIMIT).unwrap().code(), Some(0));
    assert_clean(&scratch, recorder.id());
    assert_eq!(Trace::open(&file).unwrap().clock(), "mono");
}

#[test]
fn forwards_signals_to_command() {
    let scratch = Scratch::new("forward");
    if !can_trace(&scratch) {
        return;
    }
    for how in ["record", "watch"] {
        let file = scratch.file("trace.dat");
        let output = ["-o", file.to_str().unwrap()];
        let mut command = traced(
            &worker("signaled"),
            20_000,
            &[&[how][..], if how == "record" { &output } else { &[] }].concat(),
        );
        let mut recorder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(recorder.stdout.take().unwrap());
        let is_ready = out.by_ref().lines().any(|line| line.unwrap().starts_with("ready"));
        assert!(is_ready, "{how}");
        signal(&recorder, Signal::TERM);
        let rest = out.lines().map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(recorder.status_within(TEST_LIMIT).unwrap().code(), Some(128 + 15), "{how}: {rest:?}");
        assert_clean(&scratch, recorder.id());
        if how == "record" {
            assert!(Trace::open(&file).is_ok());
        }
    }
}

#[test]
fn explains_alarms_and_runs_command() {
    let scratch = Scratch::new("alarms");
    if !can_trace(&scratch) {
        return;
    }
    let watched = worker("watched");
    let deadline = format!("{watched}=500ns");
    let task = ["watch", "--task", &watched];
    // No job takes less than half a microsecond.
    let (out, err, code) =
        run(traced(&watched, 400, &[&task[..], &["--deadline", &deadline, "--every", "10ms"]].concat()));
    if too_few_switches(&err, code) {
        return;
    }
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains(&format!("  ALARM: {watched}/")) && out.contains("the limit is 500 ns"), "{out}");
    assert!(out.contains("    C   ") && out.contains("\n    time  task, times"), "{out}");
    assert!(out.contains(" deadlines missed") && out.contains("  longest job"), "{out}");

    let (out, err, code) =
        run(traced(&watched, 500, &[&task[..], &["--deadline", "500ns", "--stop"]].concat()));
    if too_few_switches(&err, code) {
        return;
    }
    assert_eq!((code, out.matches("ALARM").count()), (Some(1), 1), "{out}{err}");

    let list = scratch.file("list");
    let exec = format!("echo \"$PUNCTUAL_SUMMARY|$PUNCTUAL_LIMIT_NS|$PUNCTUAL_JOB\" >> {}", list.display());
    let arguments = ["--deadline", "500ns", "--exec", &exec, "--json", "--worst", "2"];
    let (out, err, code) = run(traced(&watched, 30, &[&task[..], &arguments].concat()));
    assert_eq!(code, Some(7), "the command's own, as alarms are handled: {out}{err}");
    if !list.exists() && too_few_switches(&err, code) {
        return;
    }
    let lines = fs::read_to_string(&list).unwrap();
    let line = lines.lines().next().unwrap();
    let parts: Vec<&str> = line.splitn(3, '|').collect();
    assert!(parts[0].starts_with(&format!("{watched}/")) && parts[1] == "500", "{line}");
    assert_eq!(serde_json::from_str::<Value>(parts[2]).unwrap()["sort"], "thread");

    let objects = out.lines().filter(|line| line.starts_with('{'));
    let objects: Vec<Value> = objects.map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema = Schema::new(include_str!("../../../docs/trace-schema.json"));
    objects.iter().for_each(|object| schema.assert(object));
    let of = |kind: &str| objects.iter().filter(|object| object["type"] == kind).collect::<Vec<_>>();
    assert!(of("alarm")[0]["job"]["events"].as_array().is_some_and(|events| !events.is_empty()));
    // It starts at an ordinary priority, for which it has a separate row.
    assert!(of("worst").len() >= 2 || err.contains("did not count as lost"), "{out}{err}");
    let jobs = |summary: &&Value| summary["jobs"].as_u64();
    let summary = of("summary").into_iter().max_by_key(jobs).unwrap();
    let jobs = summary["jobs"].as_u64().unwrap();
    assert!(
        (jobs >= 15 || err.contains("did not count as lost")) && summary["R"]["count"] == summary["jobs"],
        "{summary}"
    );
}

/// Older kernels, such as 6.12, copy nothing from the global buffer: marks there are in no
/// recording.
#[test]
fn records_markers_into_requested_instance() {
    let scratch = Scratch::new("marks");
    if !can_mount_and_trace(&scratch) {
        return;
    }
    // The start and the end of a job of task 9, as in `punctual_core::trace_marker`.
    let script = r#"case $PUNCTUAL_TRACE in /*) to=$PUNCTUAL_TRACE ;; 1) to=$PLACE/trace_marker_raw ;; esac
        printf '\001\000JP\011\000\000\000\001\000\000\000\000\000\000\000' >"$to"
        printf '\002\000JP\011\000\000\000' >"$to""#;
    let file = scratch.file("trace.dat");
    let (out, err, code) = run({
        let mut record =
            punctual(&["trace", "record", "-o", file.to_str().unwrap(), "--", "sh", "-c", script]);
        record.env("PLACE", tracefs::PLACE);
        record
    });
    assert_eq!(code, Some(0), "{out}{err}");
    let events = Trace::open(&file).unwrap().events().unwrap().map(Result::unwrap);
    let marks = events
        .filter(|event| matches!(event.kind, Kind::JobStart { task: 9, .. } | Kind::JobEnd { task: 9, .. }));
    assert_eq!(marks.count(), 2, "{err}");
    assert_clean(&scratch, 0);
}

#[test]
fn keeps_recording_readable_when_disk_is_full() {
    let scratch = Scratch::new("full");
    if !can_trace(&scratch) {
        return;
    }
    // The mount ends with its namespace, even if processes in it are killed.
    let (program, place) = (program(), scratch.0.display());
    let program = program.display();
    let script = format!(
        "mount -t tmpfs -o size=40k none {place} && cd {place} || exit 99
         {program} trace record -o s.dat -- true; echo started $? $(ls)
         mount -o remount,size=900k {place}
         {program} trace record -o t.dat -- sh -c 'for i in $(seq 3000); do (:); done'; echo recorded $?
         {program} trace report t.dat.raw --task '*' --worst 0 2>&1; echo reported $?"
    );
    let output = match Command::new("unshare").args(["-m", "sh", "-c", &script]).output_within(TEST_LIMIT) {
        Ok(output) if output.status.code() != Some(99) => output,
        other => return skip(Need::MountNamespace, format_args!("a full disk: {other:?}")),
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("started 1\n"), "{out}{err}");
    assert!(err.starts_with("error: s.dat.raw: no storage space; choose a writable directory"), "{err}");
    assert!(out.contains("recorded 1\n"), "{out}{err}");
    assert!(
        err.contains("the disk is full; what was recorded before is in t.dat.raw and can be read"),
        "{err}"
    );
    assert!(out.contains(" events of ") && out.contains("jobs"), "{out}{err}");
}

#[test]
fn names_fix_for_bad_input() {
    let scratch = Scratch::new("bad-record");
    let can_trace = can_trace(&scratch);
    fs::create_dir(scratch.file("left.dat.raw")).unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["record", "--events", "irqs"], 2, "there is no event group `irqs`; choose from sched, irq, "),
        (&["record", "--priority", "1..100"], 2, "1..99"),
        (&["record", "--cpus", "9-3"], 2, "`9-3` is not a CPU or a range"),
        (&["record", "--buffer", "1"], 2, "--buffer"),
        (&["record", "--duration", "soon"], 2, "--duration"),
        (&["record", "-o", "/no/such/place/t.dat"], 2, "--output /no/such/place/t.dat: No such file"),
        (&["record", "-o", "left.dat"], 2, "left.dat.raw already exists"),
        (&["watch", "--exec", "true"], 2, "--exec needs a deadline; give --deadline"),
        (&["watch", "--stop"], 2, "--stop needs a deadline"),
        (&["watch", "--every", "0s"], 2, "1ns or more"),
        (&["watch", "--deadline", "0s"], 2, "--deadline"),
        (
            &["record", "--", "/no/such/program"],
            2,
            "cannot run `/no/such/program`: it is not an executable file",
        ),
        (&["watch", "--", "no-such-program"], 2, "PATH contains no executable file with that name"),
    ];
    let live: &[(&[&str], i32, &str)] = &[
        (&["record", "--pid", "4194303"], 2, "there is no process or thread 4194303; give"),
        (&["watch", "--pid", "4194303"], 2, "there is no process or thread 4194303; give"),
        (&["record", "--clock", "sundial"], 2, "no trace clock `sundial`; choose one of: "),
        (&["record", "--cpus", "4000"], 2, "CPU 4000 does not exist"),
        (&["record", "--task", "a\"b"], 2, "the filter `a\"b` cannot be used"),
    ];
    for (arguments, code, message) in cases.iter().chain(if can_trace { live } else { &[] }) {
        let mut command = punctual(&[&["trace"], *arguments].concat());
        let (out, err, found) = run({
            command.current_dir(&scratch.0);
            command
        });
        assert_eq!(found, Some(*code), "{arguments:?}: {out}{err}");
        assert!(err.contains(message) && !err.contains("panicked"), "{arguments:?}: {err}");
    }
    fs::remove_dir(scratch.file("left.dat.raw")).unwrap();
    assert_clean(&scratch, 0);
}

/// As `nobody`, from a directory that other users cannot access.
#[test]
fn error_names_remedy_for_unprivileged_users() {
    let scratch = Scratch::new("nobody");
    let copy = scratch.file("punctual");
    // By another process: a child started by another test at that time would hold the file open for
    // writing, and it could not be executed.
    let copied = Command::new("cp").arg(program()).arg(&copy).status_within(TEST_LIMIT);
    assert!(copied.unwrap().success());
    for arguments in [&["record"][..], &["watch"], &["record", "--", "true"]] {
        let mut command = Command::new(&copy);
        command.arg("trace").args(arguments).current_dir(&scratch.0);
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let (out, err, code) = run(command);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{err}");
        assert!(err.contains("record as root") || err.contains("mount it as root"), "{err}");
    }
    assert_clean(&scratch, 0);
}

/// The JSON output of `watch` stays lines of JSON, for any output of the command.
#[test]
fn keeps_output_of_command_out_of_json_lines() {
    let scratch = Scratch::new("json-lines");
    if !can_mount_and_trace(&scratch) {
        return;
    }
    let noise = "printf 'no object'; echo; sleep 0.2; printf half";
    let (out, err, code) = run(punctual(&[
        "trace", "watch", "--task", "*", "--json", "--every", "10ms", "--", "sh", "-c", noise,
    ]));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!out.is_empty() && err.contains("no object\n") && err.contains("half"), "{out}{err}");
    for line in out.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()), "{line}");
    }
}

#[test]
fn succeeds_after_duration() {
    let scratch = Scratch::new("over");
    if !can_mount_and_trace(&scratch) {
        return;
    }
    let file = scratch.file("trace.dat");
    let output = ["record", "-o", file.to_str().unwrap()];
    for how in [&["watch", "--task", "*"][..], &output] {
        let arguments = [&["trace"], how, &["--duration", "50ms", "--", "sleep", "1000"]].concat();
        let (out, err, code) = run(punctual(&arguments));
        assert_eq!(code, Some(0), "{how:?}: the command was ended as asked: {out}{err}");
        // The command's exit status is reported.
        let own = "trap 'exit 9' TERM; while :; do sleep 0.01; done";
        let arguments = [&["trace"], how, &["--duration", "300ms", "--", "sh", "-c", own]].concat();
        let (out, err, code) = run(punctual(&arguments));
        assert!(matches!(code, Some(9 | 0)), "{how:?}: {out}{err}");
    }
}

#[test]
fn removes_leftovers_of_a_killed_recorder_even_if_the_run_fails() {
    let scratch = Scratch::new("left-over");
    if !can_mount_and_trace(&scratch) {
        return;
    }
    let failing: [&[&str]; 4] = [
        &["trace", "report", "missing.dat"],
        &["trace", "record", "-o", "/no/such/place/t.dat"],
        &["trace", "record", "--task", "a\"b", "-o", "other.dat"],
        &["trace", "watch", "--stop"],
    ];
    for arguments in failing {
        let mut killed = punctual(&["trace", "record", "-o", "t.dat"]);
        let mut killed = killed.current_dir(&scratch.0).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(killed.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "recording, until Ctrl-C\n");
        killed.kill().unwrap();
        killed.status_within(TEST_LIMIT).unwrap();
        fs::remove_dir_all(scratch.file("t.dat.raw")).unwrap();
        let mut next = punctual(arguments);
        let (_, err, code) = run({
            next.current_dir(&scratch.0);
            next
        });
        assert_ne!(code, Some(0), "{arguments:?}: {err}");
        assert_clean(&scratch, killed.id());
    }
}
