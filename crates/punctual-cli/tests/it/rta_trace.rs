//! `punctual rta --trace` as a user calls it, on recordings with a known result.

#[path = "../rta_trace/machine.rs"]
mod machine;
/// Traces written by hand.
use crate::traces;

use std::fs;
use std::path::{Path, PathBuf};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};
use machine::Machine;
use punctual_trace::event::{Event, Kind, Section, SwitchOut};
use punctual_trace::write::{dat, synthetic::Synthetic};
use serde_json::Value;
use xtask_support::golden;
use xtask_support::schema::Schema;

/// Writes a trace.dat with the events of these kinds, or all.
fn write(scratch: &Scratch, to: &Path, events: &[Event], names: &[(u32, &str)], recorded: Option<&[&str]>) {
    let directory = scratch.file("recording.raw");
    let mut synthetic = Synthetic::create(&directory).unwrap();
    names.iter().for_each(|(thread, name)| synthetic.name(*thread, name));
    if let Some(recorded) = recorded {
        synthetic.recorded(recorded.iter().copied()).unwrap();
    }
    events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    let _ = fs::remove_file(to);
    dat::write(&directory, to).unwrap();
    fs::remove_dir_all(directory).unwrap();
}

const NAMES: [(u32, &str); 4] = [(101, "control"), (102, "vision"), (103, "log"), (104, "hog")];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns its output and its error output, with the status.
fn rta(trace: &Path, options: &[&str]) -> (String, String, i32) {
    let mut command = punctual(&["rta", "--trace"]);
    command.current_dir(trace.parent().unwrap()).arg(trace.file_name().unwrap());
    let output = command.args(options).output_within(TEST_LIMIT).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

/// The machine of the guide: 100 ms of a CPU with three threads.
fn documented() -> Vec<Event> {
    let mut machine = Machine::new();
    machine.run(100_000_000);
    machine.events()
}

/// As shown in the guide. `BLESS=1` regenerates recording and result.
#[test]
fn explains_documented_recording() {
    let scratch = Scratch::new("rta-documented");
    let (trace, expected) = (docs().join("threads.dat"), docs().join("threads.txt"));
    if std::env::var_os("BLESS").is_some() {
        write(&scratch, &trace, &documented(), &NAMES, None);
    }
    let (out, err, code) = rta(&trace, &[]);
    assert_eq!((err.as_str(), code), ("", 0));
    if let Some(difference) = golden::difference(&expected, &out) {
        panic!("{difference}");
    }
}

/// The machine's behavior is known: every inferred figure equals its parameter.
#[test]
fn infers_interference_of_the_machine() {
    let scratch = Scratch::new("rta-truth");
    let trace = scratch.file("trace.dat");
    write(&scratch, &trace, &documented(), &NAMES, None);
    let (out, err, code) = rta(&trace, &["--json", "--deadline", "control=400us"]);
    assert_eq!((err.as_str(), code), ("", 0));
    let report: Value = serde_json::from_str(&out).unwrap();
    let thread = |name: &str| {
        let threads = report["threads"].as_array().unwrap();
        threads.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}: {out}")).clone()
    };
    let (control, vision, log) = (thread("control/101"), thread("vision/102"), thread("log/103"));
    assert_eq!(control["periodic"]["period_ns"], 1_000_000);
    assert_eq!((&control["periodic"]["jitter_ns"], &control["priority"]), (&0.into(), &"50".into()));
    assert_eq!(vision["periodic"]["period_ns"], 5_000_000);
    assert_eq!(control["execution_ns"]["longest"][0], 200_000 + machine::SWITCH);
    // The switches back from displacing threads are in its C, too.
    let two = vision["execution_ns"]["longest"][1].as_u64().unwrap();
    assert!((2 * 1_500_000..=2 * (1_500_000 + 3 * machine::SWITCH)).contains(&two), "{two}");
    assert_eq!(
        (&log["periodic"]["period_ns"], &log["jobs_last_until"]),
        (&5_000_000.into(), &"sleep".into())
    );
    let of = |name: &str| {
        let tasks = report["rta"]["tasks"].as_array().unwrap();
        tasks.iter().find(|it| it["name"] == name).unwrap().clone()
    };
    for name in ["control/101", "vision/102", "log/103"] {
        let (seen, bound) =
            (of(name)["observed_response_ns"].as_u64(), of(name)["bound"]["response_ns"].as_u64());
        assert!(seen.unwrap() <= bound.unwrap(), "{name}: {seen:?} {bound:?}");
        // The log never competes with its waker, which no recording shows.
        let is_tight = bound.unwrap() * 2 <= seen.unwrap() * 3;
        assert!(is_tight || name == "log/103", "{name}: {seen:?} {bound:?}");
    }
    assert_eq!(report["contradictions"], serde_json::json!([]));
    let interrupt = &report["interrupts"][0];
    assert_eq!((&interrupt["times"], &interrupt["execution_ns"]["longest"][0]), (&125.into(), &3_000.into()));
}

/// Missing events are not treated as absent activity.
#[test]
fn gives_no_bound_without_interrupts_in_recording() {
    let scratch = Scratch::new("rta-unknown");
    let trace = scratch.file("trace.dat");
    let sched = ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup"];
    let events = documented().into_iter().filter(machine::is_sched).collect::<Vec<_>>();
    write(&scratch, &trace, &events, &NAMES, Some(&sched));
    let (out, err, code) = rta(&trace, &[]);
    assert_eq!((err.as_str(), code), ("", 2), "{out}");
    assert!(out.contains("Not in this recording:"), "{out}");
    assert!(
        out.contains("`control/101` has no bound: the recording does not contain its interrupts"),
        "{out}"
    );
    let row = out.lines().find(|line| line.starts_with("control/101")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    // Wake-ups do not show how much earlier a timer was due either.
    assert!(cells.ends_with(&["–"; 9]), "{row}");
}

/// Without futex calls, a sleep may be a wait for a lock, unless the user excludes that.
#[test]
fn futex_option_bounds_recording_without_futex_calls() {
    let scratch = Scratch::new("rta-futex");
    let trace = scratch.file("trace.dat");
    let recorded = [
        "sched:sched_switch",
        "sched:sched_waking",
        "sched:sched_wakeup",
        "sched:sched_migrate_task",
        "sched:sched_pi_setprio",
        "irq:irq_handler_entry",
        "irq:irq_handler_exit",
        "irq_vectors:local_timer_entry",
        "irq_vectors:local_timer_exit",
        "irq:softirq_entry",
        "irq:softirq_exit",
        "timer:hrtimer_start",
        "timer:hrtimer_expire_entry",
        "timer:hrtimer_expire_exit",
        "lock:contention_begin",
        "lock:contention_end",
    ];
    write(&scratch, &trace, &documented(), &NAMES, Some(&recorded));
    let (out, _, code) = rta(&trace, &[]);
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, 2, "{out}");
    assert!(
        flat.contains("so its C is unknown; record futex as well, by punctual trace record --events usual"),
        "{out}"
    );
    let with = ["--futex", "suspend", "--deadline", "control=400us"];
    let (out, _, code) = rta(&trace, &with);
    assert!(code == 0 && out.contains("schedulable") && !out.contains("futex calls"), "{out}");
    assert!(!out.contains("Waits for kernel locks"), "{out}");
    // Without events of kernel locks either, the option still gives bounds, by a listed assumption.
    write(&scratch, &trace, &documented(), &NAMES, Some(&recorded[..14]));
    let (out, _, code) = rta(&trace, &[]);
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == 2 && flat.contains("record lock and futex as well"), "{out}");
    let (out, _, code) = rta(&trace, &with);
    assert!(code == 0 && out.contains("Waits for kernel locks were not recorded"), "{out}");
    // Displacement is no part of C.
    let row = out.lines().find(|line| line.starts_with("vision/102  ")).unwrap();
    assert!(row.contains("1 506"), "{row}");
}

/// The reason names the events that are missing, and no others.
#[test]
fn unknown_names_missing_events() {
    let scratch = Scratch::new("rta-missing");
    let trace = scratch.file("trace.dat");
    let of_sched = ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup"];
    let handlers = ["irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_entry", "irq:softirq_exit"];
    let vectors = ["irq_vectors:local_timer_entry", "irq_vectors:local_timer_exit"];
    let is_switch = |event: &Event| matches!(event.kind, Kind::Switch { .. });
    let flat = |recorded: &[&str], is_recorded: fn(&Event) -> bool| {
        let events = documented().into_iter().filter(is_recorded).collect::<Vec<_>>();
        write(&scratch, &trace, &events, &NAMES, Some(recorded));
        let (out, _, code) = rta(&trace, &["--futex", "suspend"]);
        assert_eq!(code, 2, "{out}");
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let out = flat(&[&of_sched[..], &handlers].concat(), machine::is_sched);
    assert!(out.contains("record irq_vectors as well, by punctual trace record --events usual"), "{out}");
    let out = flat(&of_sched, machine::is_sched);
    assert!(out.contains("record irq, irq_vectors and softirq as well, by punctual"), "{out}");
    let out = flat(&[&of_sched[..1], &handlers, &vectors].concat(), is_switch);
    assert!(
        out.contains("its releases are unknown; record sched as well, by punctual trace record"),
        "{out}"
    );
}

/// A thread that runs through the recording has no C, and lower threads have no bound.
#[test]
fn leaves_threads_below_endless_one_unbounded() {
    let scratch = Scratch::new("rta-hog");
    let trace = scratch.file("trace.dat");
    let mut machine = Machine::new();
    machine.hog_from(80_000_000);
    machine.run(100_000_000);
    write(&scratch, &trace, &machine.events(), &NAMES, None);
    let (out, _, _) = rta(&trace, &[]);
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("`hog/104` has no bound:"), "{out}");
    assert!(flat.contains("`log/103` has no bound: `hog/104`, which is not below it, has none."), "{out}");
    assert!(out.lines().any(|line| line.starts_with("control/101") && line.contains('≤')), "{out}");
}

#[test]
fn judges_by_deadlines_of_command_line() {
    let scratch = Scratch::new("rta-deadlines");
    let trace = scratch.file("trace.dat");
    write(&scratch, &trace, &documented(), &NAMES, None);
    let (out, _, code) = rta(&trace, &["--deadline", "control=400us", "--deadline", "102=5ms"]);
    assert!(code == 0 && out.contains("schedulable; every C may grow by"), "{out}");
    let (out, _, code) = rta(&trace, &["--deadline", "control/101=100us"]);
    assert!(code == 1 && out.contains("not schedulable: `control/101` misses its deadline"), "{out}");
    let (_, err, code) = rta(&trace, &["--deadline", "nobody=100us"]);
    assert!(code == 2 && err.contains("nobody"), "{err}");
}

#[test]
fn escapes_hostile_names() {
    let scratch = Scratch::new("rta-hostile");
    let trace = scratch.file("trace.dat");
    let names = [(101, "a\u{1b}[2J\nb`<b>"), (102, "\u{202e}txt"), (103, "--json"), (104, "")];
    write(&scratch, &trace, &documented(), &names, None);
    let page = scratch.file("page.html");
    for options in [&[][..], &["--json"], &["--html", page.to_str().unwrap()]] {
        let (out, err, code) = rta(&trace, options);
        assert_eq!((err.as_str(), code), ("", 0));
        assert!(!out.contains(['\u{1b}', '\u{202e}']) && !out.contains("\nb`"), "{out}");
    }
    assert!(!fs::read_to_string(page).unwrap().contains("<b>"));
}

#[test]
fn rejects_files_that_are_no_recordings() {
    let scratch = Scratch::new("rta-none");
    let file = scratch.file("trace.dat");
    fs::write(&file, "no trace").unwrap();
    for trace in [file.as_path(), Path::new("/no/such/file")] {
        let output = punctual(&["rta", "--trace"]).arg(trace).output_within(TEST_LIMIT).unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
        assert!(text(&output.stderr).starts_with("error: "));
    }
    let empty = scratch.file("empty.dat");
    let tick = [Kind::VectorEntry { vector: 236 }, Kind::VectorExit { vector: 236 }];
    let events = [(5, tick[0]), (9, tick[1])].map(|(time, kind)| Event { time, cpu: 0, by: 0, kind });
    write(&scratch, &empty, &events, &[], None);
    let (_, err, code) = rta(&empty, &[]);
    assert!(code == 2 && err.contains("no job of a real-time thread"), "{err}");
}

/// The page in docs describes the output, field by field.
#[test]
fn json_is_as_documented() {
    let schema = fs::read_to_string(docs().join("inferred-schema.json")).unwrap();
    let schema = Schema::new(&schema);
    let scratch = Scratch::new("rta-schema");
    let (whole, sched) = (scratch.file("whole.dat"), scratch.file("sched.dat"));
    write(&scratch, &whole, &documented(), &NAMES, None);
    let events = documented().into_iter().filter(machine::is_sched).collect::<Vec<_>>();
    write(&scratch, &sched, &events, &NAMES, Some(&["sched:sched_switch", "sched:sched_waking"]));
    for (trace, option) in [
        (&whole, "--jobs=auto"),
        (&whole, "--jobs=timers"),
        (&whole, "--pwcet=1e-9"),
        (&sched, "--jobs=sleeps"),
    ] {
        let (out, _, _) = rta(trace, &["--json", option]);
        let report: Value = serde_json::from_str(&out).unwrap();
        schema.assert(&report);
    }
    let not = serde_json::json!({ "schema": "punctual-inferred/1" });
    assert!(!schema.violations(&not).is_empty());
}

/// Declarations and measurements of an app of two of the machine's threads. They do not include the
/// third, nor interrupts.
const MODEL: &str = r#"{ "schema": "punctual-model/1", "app": "machine",
  "partitions": [{ "name": "main", "executor": "preemptive", "cpu": 0 }],
  "tasks": [
    { "name": "task 1", "kind": "periodic", "partition": "main", "level": 2, "period_ns": 1000000, "offset_ns": 0,
      "deadline_ns": 1000000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null, "uses": [] },
    { "name": "task 2", "kind": "periodic", "partition": "main", "level": 1, "period_ns": 5000000, "offset_ns": 0,
      "deadline_ns": 5000000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null, "uses": [] }],
  "resources": [], "idle": null }"#;

fn profile(longest: u64) -> String {
    let task = |name: &str, longest: u64| {
        format!(
            r#"{{ "name": "{name}", "jobs": 20, "execution_max_ns": {longest}, "execution_min_ns": 1, "response_max_ns": 1,
                "jitter_max_ns": 0, "deadline_misses": 0, "overruns": 0, "inter_arrival": [], "spawns": [], "holds": [],
                "suspension_max_ns": 0 }}"#
        )
    };
    format!(
        r#"{{ "schema": "punctual-profile/1", "app": "machine", "duration_ns": 100000000, "clock": "monotonic", "machine": null,
            "tasks": [{}, {}],
            "partitions": [{{ "name": "main", "cpu": 0, "release_ns": 0, "dispatch_ns": 2000, "lock_ns": 0, "preemption_ns": 2000 }}] }}"#,
        task("task 1", 200_000),
        task("task 2", longest)
    )
}

/// The recording adds facts unknown to the app, and with it no job exceeds its bound. With a C that
/// is too small one does, and the output names the term and the job.
#[test]
fn adds_recorded_figures_to_model_and_profile() {
    let scratch = Scratch::new("rta-added");
    let trace = scratch.file("trace.dat");
    let mut machine = Machine::new();
    machine.marks = true;
    machine.run(100_000_000);
    write(&scratch, &trace, &machine.events(), &[], None);
    fs::write(scratch.file("m.json"), MODEL).unwrap();
    fs::write(scratch.file("p.json"), profile(1_500_000)).unwrap();
    fs::write(scratch.file("short.json"), profile(1_200_000)).unwrap();
    let with = |profile| ["m.json", "--profile", profile];
    let (out, err, code) = rta(&trace, &with("p.json"));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("`local_timer, CPU 0` interrupts it"), "{out}");
    assert!(!out.contains("were not recorded"), "{out}");
    let (out, err, code) = rta(&trace, &with("short.json"));
    let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, 1, "{out}{err}");
    assert!(flat.contains("of `task 2`, which ended at") && flat.contains(" C was 1 5"), "{out}{err}");
    let unmarked = scratch.file("unmarked.dat");
    write(&scratch, &unmarked, &documented(), &NAMES, None);
    let (_, err, code) = rta(&unmarked, &with("p.json"));
    assert!(code == 2 && err.contains("has no job of this app"), "{err}");
}

/// The machine's jobs are identical: there is nothing to fit, and the output reports it.
#[test]
fn rejects_fit_of_constant_times() {
    let scratch = Scratch::new("rta-pwcet");
    let trace = scratch.file("trace.dat");
    let mut machine = Machine::new();
    machine.run(1_100_000_000);
    write(&scratch, &trace, &machine.events(), &NAMES, None);
    let (out, err, code) = rta(&trace, &["--pwcet", "1e-9"]);
    assert_eq!((err.as_str(), code), ("", 0));
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("No fit for `control/101`: the maxima of all blocks are the same"), "{out}");
    assert!(flat.contains("No fit for `vision/102`: 219 jobs are too few: 1000 are needed."), "{out}");
    let (_, _, code) = rta(&trace, &["--pwcet", "2"]);
    assert_eq!(code, 2);
}

/// A thread disables preemption from 100 to 400 µs and a timer within wakes a more urgent one,
/// twice. All terms are known.
fn sections(switched: u64) -> Vec<Event> {
    let (low, high) = (traces::task(7, 120), traces::task(8, 20));
    let off = |section| Kind::Disable { section, caller: 0 };
    let on = |section| Kind::Enable { section, caller: 0 };
    let mut script = traces::Script::new();
    script.at(5_000, 0, off(Section::Preemption));
    script.switch(10_000, 0, SwitchOut::Runnable, low);
    script.at(12_000, 0, on(Section::Preemption));
    for base in [0, 2_000_000] {
        script.at(base + 100_000, 0, off(Section::Preemption));
        script.at(base + 150_000, 0, Kind::VectorEntry { vector: 236 });
        script.waking(base + 170_000, 0, high, 0);
        script.wakeup(base + 171_000, 0, high, 0);
        script.at(base + 200_000, 0, Kind::VectorExit { vector: 236 });
        script.at(base + 400_000, 0, on(Section::Preemption));
        script.at(base + 430_000, 0, off(Section::Preemption));
        script.switch(base + switched, 0, SwitchOut::Runnable, high);
        script.at(base + switched + 20_000, 0, on(Section::Preemption));
        script.at(base + 900_000, 0, off(Section::Preemption));
        script.switch(base + 905_000, 0, SwitchOut::Sleeping, low);
        script.at(base + 910_000, 0, on(Section::Preemption));
    }
    script.events
}

#[test]
fn bounds_scheduling_latency() {
    let scratch = Scratch::new("latency");
    let (trace, without) = (scratch.file("trace.dat"), scratch.file("without.dat"));
    write(&scratch, &trace, &sections(480_000), &[(7, "low\u{1b}"), (8, "high")], None);
    let output = punctual(&["trace", "latency"]).arg(&trace).output_within(TEST_LIMIT).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((err.as_str(), output.status.code()), ("", Some(0)), "{out}");
    // 250 + 30 + 50 without the handler, and its 50; observed are 310.
    let row =
        out.lines().find(|line| line.trim_start().starts_with("0  ")).unwrap_or_else(|| panic!("{out}"));
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["0", "250", "20.0", "30.0", "50.0", "50.0", "380", "310"], "{out}");
    write(&scratch, &without, &documented(), &NAMES, None);
    let output = punctual(&["trace", "latency"]).arg(&without).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--events usual,preemptirq"));
}

/// A bound from a narrow recording would lack the activity of the other threads.
#[test]
fn narrow_recording_gives_no_bounds() {
    let scratch = Scratch::new("narrow");
    let trace = scratch.file("narrow.dat");
    let recorded = ["sched:sched_switch", "sched:sched_waking", "switches of 7 8", "switches followed"];
    write(&scratch, &trace, &sections(480_000), &[(7, "low"), (8, "high")], Some(&recorded));
    let latency = punctual(&["trace", "latency"]).arg(&trace).output_within(TEST_LIMIT).unwrap();
    let outputs = [(text(&latency.stderr), latency.status.code().unwrap()), {
        let (_, err, status) = rta(&trace, &[]);
        (err, status)
    }];
    for (err, status) in outputs {
        assert_eq!(status, 2, "{err}");
        assert!(err.contains("narrow.dat has the switches of traced threads only"), "{err}");
        assert!(err.contains("record without --narrow"), "{err}");
    }
    // Its jobs are reported nevertheless.
    let report = punctual(&["trace", "report"]).arg(&trace).output_within(TEST_LIMIT).unwrap();
    assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
}
