//! `punctual bench` as a user calls it: all suites with few samples, with and without privileges,
//! and ended by Ctrl-C.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use punctual_bench::compare::load;
use punctual_bench::model::{Run, Verdict};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use support::{Scratch, punctual, text};
use xtask_support::schema::Schema;

/// Reads the written run, and checks that it is as documented.
fn documented(json: &Path) -> Run {
    let schema = Schema::new(include_str!("../../../docs/bench-schema.json"));
    schema.assert(&serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap());
    load(json).unwrap()
}

/// Returns the sum of the counts that a chart draws for a row.
fn drawn(page: &str, id: &str) -> u64 {
    let chart =
        page.split(&format!("data-row=\"{id}\"")).nth(1).unwrap_or_else(|| panic!("no chart of {id}"));
    let chart = chart.split("</g>").next().unwrap();
    chart
        .split("data-count=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

/// The default suites, except `executors`: it takes as long as three others, and has a test next to
/// its code.
const SUITES: [&str; 7] = ["rtos", "behavior", "latency", "hourglass", "interference", "policies", "curves"];

/// Checks the results that every run of these suites must have.
fn assert_complete(suites: &[&str], output: &Output, json: &Path, html: &Path) -> Run {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let run = documented(json);
    let names: Vec<&str> = run.suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(names, suites, "{err}");
    assert!(!run.interrupted);
    // Only a violated rule may make it fail.
    assert_eq!(output.status.code(), Some(i32::from(run.failures() > 0)), "{out}{err}");
    // Policies are the kernel's, and a machine may be too busy to follow them; Punctual's
    // guarantees hold.
    let broken = run.checks().filter(|check| check.verdict == Verdict::Failed);
    for check in broken {
        assert!(check.id.starts_with("policies/"), "{check:?}");
    }

    // Not a terminal: plain lines, and no control characters.
    assert!(err.lines().any(|line| line.starts_with("rtos 1/")), "{err}");
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'));
    assert!(out.contains("own overhead: an empty measurement takes"), "{out}");

    let page = fs::read_to_string(html).unwrap();
    let mut charts = 0;
    for row in run.rows() {
        if let Some(figures) = &row.figures {
            assert_eq!(drawn(&page, &row.id), figures.samples, "{}", row.id);
            charts += 1;
        }
    }
    assert!(charts > 12 * suites.len(), "{charts} charts");
    run
}

/// These suites, as short as they can be.
fn short(suites: &[&'static str], json: &Path, html: &Path) -> Vec<String> {
    let mut arguments = vec!["--quick", "--samples", "8", "--duration", "50ms"];
    arguments.extend(suites);
    let files = [format!("--json={}", json.display()), format!("--html={}", html.display())];
    arguments.into_iter().map(str::to_owned).chain(files).collect()
}

#[test]
fn runs_all_suites_with_and_without_privileges() {
    let _turn = test_skip::alone();
    let scratch = Scratch::new("all");
    let (json, html) = (scratch.file("run.json"), scratch.file("run.html"));
    let output = punctual(&["bench"]).args(short(&SUITES, &json, &html)).output_within(TEST_LIMIT).unwrap();
    let run = assert_complete(&SUITES, &output, &json, &html);
    if run.machine.fifo_refused.is_some() {
        return assert_lists_missing_settings(&run);
    }

    // As `nobody`, from a directory that other users cannot access.
    let program = scratch.file("punctual");
    fs::copy(env!("CARGO_BIN_EXE_punctual"), &program).unwrap();
    let (json, html) = (scratch.file("nobody.json"), scratch.file("nobody.html"));
    let mut command = Command::new(&program);
    // `latency` takes as long as the others together; nightly tests without privileges run it.
    let others = SUITES.into_iter().filter(|suite| *suite != "latency").collect::<Vec<_>>();
    command.arg("bench").args(short(&others, &json, &html)).uid(65534).gid(65534).current_dir("/");
    let output = match command.output_within(TEST_LIMIT) {
        Ok(output) => output,
        // A user who may use SCHED_FIFO but may not become another user.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
        Err(error) => panic!("{error}"),
    };
    let run = assert_complete(&others, &output, &json, &html);
    if run.machine.fifo_refused.is_some() {
        assert_lists_missing_settings(&run);
    }
}

fn assert_lists_missing_settings(run: &Run) {
    for row in run.rows().filter(|row| row.id.starts_with("rtos/") && row.figures.is_some()) {
        assert!(row.why.iter().any(|why| why.starts_with("no SCHED_FIFO")), "{row:?}");
    }
    for check in run.checks().filter(|check| check.id.starts_with("policies/")) {
        assert_eq!(check.verdict, Verdict::NotMeaningful, "{check:?}");
    }
    assert!(run.machine.notes.iter().any(|note| note.contains("CAP_SYS_NICE")), "{:?}", run.machine.notes);
}

#[test]
fn keeps_measured_results_on_ctrl_c() {
    let _turn = test_skip::alone();
    let scratch = Scratch::new("stop");
    let json = scratch.file("run.json");
    let mut child =
        punctual(&["bench", "hourglass", "--duration", "600s", &format!("--json={}", json.display())])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // It has begun to measure.
    assert!(lines.any(|line| line.unwrap().starts_with("hourglass 1/")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.status_within(TEST_LIMIT).unwrap().code(), Some(130));
    let run = documented(&json);
    assert!(run.interrupted);
    let first = run.rows().next().expect("the first turn was cut short, not lost");
    assert!(first.figures.is_some(), "{first:?}");
}

#[test]
fn opens_with_a_verdict_for_each_period() {
    let _turn = test_skip::alone();
    let scratch = Scratch::new("periods");
    let json = scratch.file("run.json");
    let output = punctual(&["bench", "periods", "--duration", "40ms", "--period", "250us"])
        .arg(format!("--json={}", json.display()))
        .output_within(TEST_LIMIT)
        .unwrap();
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    assert!(out.contains("(100 Hz)") && out.contains("(4 000 Hz)") && out.contains("verdict"), "{out}");
    let suite = &documented(&json).suites[0];
    let found: Vec<_> =
        suite.answers.iter().map(|it| (it.period_ns, it.condition.as_str(), it.releases)).collect();
    assert_eq!(found[..2], [(10_000_000, "idle", 2), (10_000_000, "load", 2)]);
    assert_eq!(found[6..], [(250_000, "idle", 80), (250_000, "load", 80)]);
    for answer in &suite.answers {
        let bound = (answer.misses == 0).then(|| 3.0 / answer.releases as f64);
        assert_eq!(answer.miss_rate_bound, bound.map(|bound| bound.min(1.0)), "{answer:?}");
        assert_eq!(answer.worst_ns > Some(answer.period_ns), answer.misses > 0, "{answer:?}");
    }
    // Each idle window was observed, and marks its answer.
    let idle = suite.answers.iter().filter(|answer| answer.condition == "idle");
    for (window, answer) in suite.windows.iter().zip(idle) {
        assert!(window.step.ends_with(", idle") && window.before.length_s >= 0.05, "{window:?}");
        assert_eq!(window.disturbed, answer.disturbed);
    }
    assert_eq!(suite.windows.len(), 4);
}

#[test]
fn compares_with_earlier_run() {
    let _turn = test_skip::alone();
    let scratch = Scratch::new("compare");
    let old = scratch.file("old.json");
    let old = old.to_str().unwrap();
    let few = ["bench", "rtos", "--samples", "4"];
    assert!(
        punctual(&[&few[..], &[&format!("--json={old}")]].concat())
            .output_within(TEST_LIMIT)
            .unwrap()
            .status
            .success()
    );
    let output = punctual(&[&few[..], &["--compare", old]].concat()).output_within(TEST_LIMIT).unwrap();
    let out = text(&output.stdout);
    assert!(out.contains("compared with the run of 20") && out.contains("rtos/switch/posix"), "{out}");
    // A regression is a finding.
    assert_eq!(output.status.code(), Some(i32::from(out.contains("  REGRESSION  "))), "{out}");
}

#[test]
fn names_flag_of_bad_input_and_exits_with_2() {
    let scratch = Scratch::new("bad");
    let (other, newer) = (scratch.file("other.json"), scratch.file("newer.json"));
    fs::write(&other, "{}").unwrap();
    fs::write(&newer, r#"{"format":"punctual-bench","version":2}"#).unwrap();
    let (other, newer) = (other.to_str().unwrap(), newer.to_str().unwrap());
    for (arguments, message) in [
        (vec!["--samples", "0"], "error: --samples: at least one sample is needed; give 1 or more"),
        (vec!["--cpus", "4095"], "error: --cpus: this process may not run on CPU 4095; allowed: "),
        (vec!["--cpus", "0-1"], "error: --cpus 0-1: this runs on one CPU"),
        (vec!["--duration", "0s"], "error: --duration: "),
        (vec!["--duration", "2"], "has no unit"),
        (vec!["--compare", "/no/such/file"], "error: --compare: cannot read /no/such/file: "),
        (
            vec!["--compare", other],
            "is not a result of `punctual bench --json`: its `format` is not `punctual-bench`; give one",
        ),
        (vec!["--compare", newer], "has version 2 of the schema, and this program reads version 1"),
        (vec!["--json=/no/such/directory/file"], "error: --json /no/such/directory/file: "),
        (vec!["--json=same", "--html", "same"], "error: --html: the same file as --json"),
        (vec!["--load", "heavy"], "--load"),
        (vec!["weather"], "weather"),
    ] {
        let output = punctual(&[&["bench"], &arguments[..]].concat()).output_within(TEST_LIMIT).unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
        assert!(output.stdout.is_empty());
    }
}
