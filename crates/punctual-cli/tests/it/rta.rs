//! `punctual rta`: its output and its exit codes.

use std::fs;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};

const SET: &str = r#"
schema = "punctual-taskset/1"
[[resource]]
name = "state"
[[task]]
name = "sample"
level = 2
period = "1ms"
execution = "200us"
sections = [{ resource = "state", hold = "10us" }]
[[task]]
name = "log"
level = 1
period = "5ms"
execution = "2ms"
deadline = "4ms"
sections = [{ resource = "state", hold = "40us" }]
"#;

/// The file in a separate directory.
struct File {
    _scratch: Scratch,
    path: PathBuf,
}

impl File {
    fn new(name: &str, text: &str) -> Self {
        let scratch = Scratch::new(&format!("rta-{name}"));
        let path = scratch.file(name);
        fs::write(&path, text).unwrap();
        Self { _scratch: scratch, path }
    }
}

fn rta(file: &File, options: &[&str]) -> Output {
    punctual(&["rta"]).arg(&file.path).args(options).output_within(TEST_LIMIT).unwrap()
}

#[test]
fn prints_bounds_and_verdict() {
    let file = File::new("good.toml", SET);
    let output = rta(&file, &[]);
    let out = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    for part in [
        "schedulable; every C may grow by 42.8 %; `log` is the first to miss",
        "`log` ends within 2 600 µs of its release, 1 400 µs before its deadline",
        "`sample` displaces it by 3 jobs, 600 µs.",
        "The bound is exact",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
}

/// As shown in the book.
#[test]
fn explains_documented_task_set() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let output = punctual(&["rta", "tasks.toml"]).current_dir(&docs).output_within(TEST_LIMIT).unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let expected = fs::read_to_string(docs.join("tasks.txt")).unwrap();
    assert_eq!(
        text(&output.stdout),
        expected,
        "docs/tasks.txt, which the book includes, shows something else"
    );
}

#[test]
fn exits_by_verdict() {
    let file = File::new("status.toml", SET);
    let code = |options: &[&str]| rta(&file, options).status.code();
    assert_eq!(code(&["--fail-under", "42%"]), Some(0));
    assert_eq!(code(&["--fail-under", "43%"]), Some(1));
    assert_eq!(code(&["--scale", "1.42"]), Some(0));
    assert_eq!(code(&["--scale", "1.5"]), Some(1));
    assert_eq!(code(&["--scale", "1.5", "--assign"]), Some(1));
    assert_eq!(code(&["--scale", "x"]), Some(2));
    let output = rta(&file, &["--scale", "4"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors.contains("status.toml:11: `log` has no bound: `sample` and `log` need 240.0 %"),
        "{errors}"
    );
    assert!(errors.contains("fix: "), "{errors}");
}

#[test]
fn names_file_line_and_fix_of_bad_input() {
    let file = File::new("bad.toml", &SET.replace("\"5ms\"", "5"));
    let output = rta(&file, &[]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
    let errors = text(&output.stderr);
    assert!(errors.contains("bad.toml:14: 5 has no unit") && errors.contains("fix: "), "{errors}");
    for (arguments, remedy) in [
        (&["/no/such/file"][..], "; give a text file"),
        (&["/dev/null"], "write `schema = "),
        (&["Cargo.toml", "--scale", "0"], "write a factor above 0"),
        (&["--", "/no/such/app"], "cannot run `/no/such/app`: it is not an executable file; give the path"),
        (&["--", "true"], "; give an app of Punctual"),
    ] {
        let output = punctual(&[&["rta"], arguments].concat()).output_within(TEST_LIMIT).unwrap();
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(remedy), "{arguments:?}: {error}");
    }
}

#[test]
fn rejects_options_without_effect() {
    let file = File::new("unused.toml", SET);
    let set = file.path.to_str().unwrap();
    for (arguments, remedy) in [
        (&[set, "--cpus", "0"][..], "is a task set; give `cpus` of its global partition there"),
        (&[set, "--without", "log"], "is a task set; remove the task there"),
        (&[set, "--duration", "1s"], "no app is run; give `--` and an app, or"),
        (&[set, "--assign", "--json"], "cannot be used with"),
        (&[set, "--trace", "t.dat"], "is a task set; give the model of an app"),
        (&[set, "--trace", "t.dat", "--deadline", "1ms"], "cannot be used with"),
        (&["--trace", "t.dat", "--cpus", "0"], "; omit the option"),
        (&["--trace", "t.dat", "--without", "log"], "; give the model of the app"),
        (&["--trace", "t.dat", "--profile", "p.json"], "--profile requires the model"),
    ] {
        let output = punctual(&[&["rta"], arguments].concat()).output_within(TEST_LIMIT).unwrap();
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(remedy), "{arguments:?}: {error}");
    }
}

#[test]
fn prints_json() {
    let output = rta(&File::new("json.toml", SET), &["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "punctual-rta/1");
    assert_eq!(report["schedulable"], true);
    let sample = &report["tasks"][0];
    assert_eq!(sample["bound"]["response_ns"], 240_000);
    assert_eq!(sample["bound"]["blocked_by"], "log");
    assert_eq!(sample["bound"]["exact"], true);
    assert_eq!(report["tasks"][1]["bound"]["interference"][0]["jobs"], 3);
    assert_eq!(report["tasks"][1]["margins"]["execution_first_to_miss"], "log");
}

#[test]
fn writes_page() {
    let file = File::new("page.toml", &SET.replace("\"sample\"", "\"<sample>\""));
    let page = file.path.with_extension("html");
    let output = rta(&file, &["--html", page.to_str().unwrap()]);
    let html = fs::read_to_string(page).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for part in ["&lt;sample&gt;", "42.8\u{202F}%", "<svg", "The bound is exact"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<sample>"));
    assert_eq!(rta(&file, &["--html", "/no/such/directory/x.html"]).status.code(), Some(2));
}

#[test]
fn page_writes_bound_beyond_its_axis_and_how_far_c_has_to_shrink() {
    let shows = |change: &str, parts: &[&str]| {
        let file = File::new("late.toml", &SET.replace("deadline = \"4ms\"", change));
        let page = file.path.with_extension("html");
        assert_eq!(rta(&file, &["--html", page.to_str().unwrap()]).status.code(), Some(1));
        let html = fs::read_to_string(page).unwrap();
        for part in parts {
            assert!(html.contains(part), "{part}");
        }
    };
    shows("deadline = \"1ms\"", &[">bound 260 %</text>", "shrink to</", "45.4\u{202F}%"]);
    shows("deadline = \"4ms\"\njitter = \"5ms\"", &["shrink to</", "no shorter C would do"]);
}

#[test]
fn bounds_chains() {
    let chain = |deadline: &str| {
        let set = format!(
            "{SET}[[chain]]\nname = \"loop\"\ntasks = [\"sample\", \"log\"]\ndeadline = \"{deadline}\"\n"
        );
        rta(&File::new("chain.toml", &set), &[])
    };
    // 1 ms until `sample` is released, 5 ms until `log` is, which then takes 2.6 ms.
    let output = chain("8600us");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("sample → log"), "{}", text(&output.stdout));
    let output = chain("8599us");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("a chain does not"), "{}", text(&output.stdout));
}

#[test]
fn finds_levels() {
    let swapped = SET
        .replace("level = 2", "level = 9")
        .replace("level = 1", "level = 2")
        .replace("level = 9", "level = 1");
    let file = File::new("levels.toml", &swapped);
    assert_eq!(rta(&file, &[]).status.code(), Some(1));
    let output = rta(&file, &["--assign"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(out.contains("`sample`: priority = 2\n") && out.contains("`log`: priority = 1\n"), "{out}");
}

const MODEL: &str = r#"{ "schema": "punctual-model/1", "app": "arm",
  "partitions": [ { "name": "main", "executor": "preemptive", "cpu": null } ],
  "tasks": [
    { "name": "sample", "kind": "periodic", "partition": "main", "level": 2, "period_ns": 1000000, "offset_ns": 0,
      "deadline_ns": 1000000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": "skip", "on_early": null,
      "uses": [ { "resource": "state", "access": "exclusive" } ] },
    { "name": "act", "kind": "message", "partition": "main", "level": 1, "period_ns": null, "offset_ns": null,
      "deadline_ns": 900000, "min_interval_ns": null, "burst": null, "capacity": 1, "on_overrun": null, "on_early": null,
      "uses": [ { "resource": "state", "access": "lock" } ] } ],
  "resources": [ { "name": "state", "ceiling": 2, "protocol": "srp", "group": null, "partitions": ["main"] } ],
  "idle": null }"#;

const PROFILE: &str = r#"{ "schema": "punctual-profile/1", "app": "arm", "duration_ns": 5000000000, "clock": "virtual",
  "machine": { "cpu": "x", "kernel": "y" },
  "tasks": [
    { "name": "sample", "jobs": 5000, "execution_max_ns": 200000, "execution_min_ns": 100, "response_max_ns": 210000,
      "jitter_max_ns": 0, "deadline_misses": 0, "overruns": 0, "inter_arrival": [ { "releases": 2, "least_ns": 1000000 } ],
      "spawns": [ { "task": "act", "most_per_job": 1 } ], "holds": [], "suspension_max_ns": 0 },
    { "name": "act", "jobs": 5000, "execution_max_ns": 300000, "execution_min_ns": 100, "response_max_ns": 310000,
      "jitter_max_ns": 0, "deadline_misses": 0, "overruns": 0, "inter_arrival": [], "spawns": [],
      "holds": [ { "resource": "state", "longest_ns": 40000 } ], "suspension_max_ns": 0 } ],
  "partitions": [ { "name": "main", "cpu": null, "release_ns": 0, "dispatch_ns": 0, "lock_ns": 0, "preemption_ns": 0 } ] }"#;

/// Combines a model with a profile.
fn combined(name: &str, model: &str, profile: &str) -> Output {
    let scratch = Scratch::new(&format!("rta-{name}"));
    fs::write(scratch.file("m.json"), model).unwrap();
    fs::write(scratch.file("p.json"), profile).unwrap();
    let mut command = punctual(&["rta", "--json"]);
    command
        .arg(scratch.file("m.json"))
        .arg("--profile")
        .arg(scratch.file("p.json"))
        .output_within(TEST_LIMIT)
        .unwrap()
}

#[test]
fn bounds_app_by_model_and_profile() {
    let output = combined("app", MODEL, PROFILE);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // The ceiling of `state` is that of its highest user, which does not lock it: B = 40 µs.
    assert_eq!(report["tasks"][0]["bound"]["response_ns"], 240_000);
    assert_eq!(report["tasks"][0]["observed_response_ns"], 210_000);
    // From its spawn on, one job of `sample` precedes it.
    assert_eq!(report["tasks"][1]["bound"]["response_ns"], 500_000);
    assert_eq!(report["assumptions"].as_array().unwrap().len(), 0);
}

#[test]
fn error_names_missing_parts_of_a_profile() {
    for (profile, line, part) in [
        (
            PROFILE.replace(
                "\"jobs\": 5000, \"execution_max_ns\": 300000",
                "\"jobs\": 5000, \"execution_max_ns\": null",
            ),
            3,
            "no job of `act`",
        ),
        (PROFILE.replace("\"arm\"", "\"leg\""), 1, "profile of `leg`"),
        (PROFILE.replace("\"jitter_max_ns\"", "\"jitter\""), 5, "unknown field `jitter`"),
        (PROFILE.replace("profile/1", "profile/6"), 1, "punctual-profile/5"),
    ] {
        let output = combined("lacks", MODEL, &profile);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(&format!("p.json:{line}: ")) && errors.contains(part), "{errors}");
    }
    let unspawned = PROFILE.replace("{ \"task\": \"act\", \"most_per_job\": 1 }", "");
    let errors = text(&combined("unspawned", MODEL, &unspawned).stderr);
    assert!(errors.contains("m.json:8: ") || errors.contains("m.json:7: "), "{errors}");
    assert!(
        errors.contains("the release rate of `act`")
            && errors.contains("min_interval")
            && errors.contains("profile a run"),
        "{errors}"
    );
}

/// The book's example of the gimbal: its model, and the profile of a run in counted time.
#[test]
fn closes_documented_gimbal_loop() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let scratch = Scratch::new("rta-gimbal");
    let mut command = punctual(&["rta", "--without", "steer"]);
    command.arg(docs.join("gimbal-model.json")).arg("--profile").arg(docs.join("gimbal-profile.json"));
    let output = command.arg("--html").arg(scratch.file("page.html")).output_within(TEST_LIMIT).unwrap();
    assert_eq!(text(&output.stdout), fs::read_to_string(docs.join("gimbal.txt")).unwrap());
    assert_eq!(output.status.code(), Some(0));
    let page = fs::read_to_string(scratch.file("page.html")).unwrap();
    // Every window is drawn, next to the longest job, for wide and for narrow screens.
    assert_eq!(page.matches("longest seen: ").count(), 2 * 4);
    assert!(!page.contains("too long to draw"));
}

#[test]
fn response_above_bound_is_a_model_defect() {
    let profile = PROFILE.replace("\"response_max_ns\": 210000", "\"response_max_ns\": 298000");
    let scratch = Scratch::new("rta-defect");
    fs::write(scratch.file("m.json"), MODEL).unwrap();
    fs::write(scratch.file("p.json"), profile).unwrap();
    let mut command = punctual(&["rta"]);
    let output = command
        .arg(scratch.file("m.json"))
        .arg("--profile")
        .arg(scratch.file("p.json"))
        .output_within(TEST_LIMIT)
        .unwrap();
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(out.contains("a job of `sample` took 298 µs, 58 µs more than its bound"), "{out}");
}

/// Three tasks of 1, 2 and 5 ms with a shared resource, by hand: 230, 568 and 1400 µs. In counted
/// time they took 217.8, 557.7 and 1458 µs, for which the set has no term: it does not include
/// lateness and overheads.
const BY_HAND: &str = r#"
schema = "punctual-taskset/1"
[[resource]]
name = "data"
[[task]]
name = "high"
level = 3
period = "1ms"
execution = "130us"
sections = [{ resource = "data", hold = "10us" }]
[[task]]
name = "middle"
level = 2
period = "2ms"
execution = "338us"
[[task]]
name = "low"
level = 1
period = "5ms"
execution = "802us"
sections = [{ resource = "data", hold = "100us" }]
"#;

/// Measurements of a run of it: R, C and lateness of each task, the hold of `low`, and the cost of
/// a release, in ns.
fn run_of_it(
    responses: [u32; 3],
    executions: [u32; 3],
    lateness: [u32; 3],
    hold: u32,
    release: u32,
) -> String {
    let task = |at: usize, name: &str| {
        let holds = if name == "low" {
            format!(r#"{{ "resource": "data", "longest_ns": {hold} }}"#)
        } else {
            "".into()
        };
        format!(
            r#"{{ "name": "{name}", "jobs": 1000, "execution_max_ns": {}, "response_max_ns": {}, "jitter_max_ns": 900000,
                "lateness_max_ns": {}, "spawns": [], "holds": [{holds}] }}"#,
            executions[at], responses[at], lateness[at]
        )
    };
    let tasks = ["high", "middle", "low"].iter().enumerate().map(|(at, name)| task(at, name));
    format!(
        r#"{{ "schema": "punctual-profile/1", "app": "app", "tasks": [{}],
            "partitions": [{{ "name": "main", "release_ns": {release}, "dispatch_ns": 0, "lock_ns": 0, "preemption_ns": 0 }}] }}"#,
        tasks.collect::<Vec<_>>().join(",")
    )
}

#[test]
fn names_term_missing_in_handwritten_set() {
    let file = File::new("by-hand.toml", BY_HAND);
    let profile = file.path.with_extension("json");
    let compared = |measured: String| {
        fs::write(&profile, measured).unwrap();
        let output = rta(&file, &["--profile", profile.to_str().unwrap()]);
        // Line breaks are arbitrary.
        (output.status.code(), text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (seen, known, none) = ([217_800, 557_700, 1_458_000], [130_000, 338_000, 802_000], [0; 3]);

    let (code, out) = compared(run_of_it(seen, known, [3_000, 4_000, 61_000], 100_000, 0));
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("a job of `low` took 1 458 µs, 58 µs more than its bound."), "{out}");
    let lateness =
        "J: `low` was released late by 61 µs, and the model has 0 ns; with it the bound is 1 461 µs.";
    assert!(out.contains(lateness), "{out}");
    assert!(!out.contains("a job of `high`") && !out.contains("a job of `middle`"), "{out}");

    // The largest delay of the lowest comes first, and causes that do not affect it are not among
    // its terms.
    let (_, out) = compared(run_of_it(seen, [130_000, 338_000, 812_000], none, 100_000, 15_000));
    let at = |part: &str| out.find(part).unwrap_or_else(|| panic!("{part}\n{out}"));
    assert!(at("SS: a release costs 15 µs") < at("C: a job of `low` executed for 812 µs"), "{out}");

    // The unexplained remainder is reported.
    let (code, out) = compared(run_of_it(seen, known, none, 100_000, 0));
    assert!(code == Some(1) && out.contains("58 µs remain that no term contains"), "{out}");

    let within = [217_800, 557_700, 1_399_000];
    let (code, out) = compared(run_of_it(within, known, none, 100_000, 0));
    assert!(code == Some(0) && !out.contains("model has"), "{out}");
    let (code, out) = compared(run_of_it(within, known, none, 104_000, 0));
    assert!(
        code == Some(0) && out.contains("B: `low` held `data` for 104 µs, and the model has 100 µs"),
        "{out}"
    );

    let (code, _) = compared(run_of_it(seen, known, none, 0, 0).replace("\"high\"", "\"hi\""));
    assert_eq!(code, Some(2));
    let output = punctual(&["rta", "--profile", "p.json"]).output_within(TEST_LIMIT).unwrap();
    assert!(text(&output.stderr).contains("--profile requires the model"), "{}", text(&output.stderr));
}

/// An app that writes the recorded files.
#[test]
fn runs_app_to_measure_it() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new("rta-run");
    let (model, profile) = (scratch.file("m.json"), scratch.file("p.json"));
    fs::write(&model, MODEL).unwrap();
    fs::write(&profile, PROFILE).unwrap();
    let app = scratch.file("app");
    let script = format!(
        "#!/bin/sh\necho to nowhere\n[ -n \"$PUNCTUAL_MODEL\" ] && {{ cp {} \"$PUNCTUAL_MODEL\"; exit 0; }}\n\
         [ \"$1\" = ends ] || {{ trap 'cp {p} \"$PUNCTUAL_PROFILE\"; exit 0' TERM; while :; do sleep 0.05; done; }}\n\
         [ -z \"$2\" ] && cp {p} \"$PUNCTUAL_PROFILE\"\nexit 3\n",
        model.display(),
        p = profile.display()
    );
    fs::write(&app, script).unwrap();
    fs::set_permissions(&app, fs::Permissions::from_mode(0o755)).unwrap();
    let app = app.to_str().unwrap();
    let bounds = |run: &[&str]| {
        let output = punctual(&["rta", "--json"]).args(run).output_within(TEST_LIMIT).unwrap();
        let report: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        let is_bounded = output.status.success() && report.is_some_and(|report| report["app"] == "arm");
        if is_bounded { Ok(()) } else { Err(text(&output.stderr)) }
    };
    assert_eq!(bounds(&["--", app, "ends"]), Ok(()));
    // On a busy machine the app may be asked to end before it handles signals.
    let tries = ["200ms", "2s", "20s"].map(|length| ["--duration", length, "--", app]);
    assert!(tries.iter().any(|run| bounds(run).is_ok()), "{:?}", bounds(&tries[2]));
    let output = punctual(&["rta", "--", app, "ends", "silently"]).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("has written no profile (exit status: 3)"),
        "{}",
        text(&output.stderr)
    );
    // Tasks may be released by standard input, which declares nothing.
    let reader = scratch.file("reader");
    let script = format!(
        "#!/bin/sh\nread line\n[ -n \"$PUNCTUAL_MODEL\" ] && [ -z \"$line\" ] && cp {} \"$PUNCTUAL_MODEL\"\n\
         [ -n \"$PUNCTUAL_PROFILE\" ] && [ \"$line\" = go ] && cp {} \"$PUNCTUAL_PROFILE\"\n",
        model.display(),
        profile.display()
    );
    fs::write(&reader, script).unwrap();
    fs::set_permissions(&reader, fs::Permissions::from_mode(0o755)).unwrap();
    let input = scratch.file("input");
    fs::write(&input, "go\n").unwrap();
    let mut command = punctual(&["rta", "--json", "--"]);
    command.arg(&reader).stdin(fs::File::open(&input).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().output_within(TEST_LIMIT).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let slow = scratch.file("slow");
    let script = format!(
        "#!/bin/sh\n[ -n \"$PUNCTUAL_MODEL\" ] && {{ cp {} \"$PUNCTUAL_MODEL\"; exit 0; }}\nexec sleep 60\n",
        model.display()
    );
    fs::write(&slow, script).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = punctual(&["rta", "--duration", "1ms", "--"]);
    let error = text(&command.arg(&slow).output_within(TEST_LIMIT).unwrap().stderr);
    assert!(error.ends_with("had not started its tasks within --duration; extend it\n"), "{error}");
}
