//! `punctual rta`: what it prints, and how it exits.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use support::{Scratch, punctual, text};

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

/// The file in a directory of its own.
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
    punctual(&["rta"]).arg(&file.path).args(options).output().unwrap()
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
    let missing = punctual(&["rta", "/no/such/file"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("/no/such/file: "));
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
fn writes_a_page() {
    let file = File::new("page.toml", &SET.replace("\"sample\"", "\"<sample>\""));
    let page = file.path.with_extension("html");
    let output = rta(&file, &["--html", page.to_str().unwrap()]);
    let html = fs::read_to_string(page).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for part in ["&lt;sample&gt;", "42.8 %", "<svg", "The bound is exact"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<sample>"));
    assert_eq!(rta(&file, &["--html", "/no/such/directory/x.html"]).status.code(), Some(2));
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
