//! `punctual get` and `punctual set`: an app that is tuned, and all rejected inputs.

#[path = "../support/tuned.rs"]
mod tuned;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, program, punctual, text};
use serde_json::Value;
use test_skip::{Need, skip};
use tuned::App;

#[test]
#[ignore = "a program of other tests"]
fn tuned_program() {
    tuned::run();
}

/// Starts an app with a name that is unique among runs of these tests.
fn app(name: &str) -> App {
    App::start("parameters::tuned_program", &format!("{name}.{}", std::process::id()))
}

/// Returns the output of a successful command.
fn output(arguments: &[&str]) -> String {
    let output = punctual(arguments).output_within(TEST_LIMIT).unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the error output of a rejected command.
fn refused(output: &Output) -> String {
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
    text(&output.stderr)
}

fn refusal(arguments: &[&str]) -> String {
    refused(&punctual(arguments).output_within(TEST_LIMIT).unwrap())
}

const LISTED: &str = "\
parameter  value  default  min   max  unit       type
pid.kp       1.2      1.2  0.0  10.0  A/rad      f64
pid.ki      0.05     0.05  0.0   1.0  A/(rad s)  f64
window         8        8    1    64  –          u16
enabled     true     true    –     –  –          bool
";

#[test]
fn shows_and_sets_parameters_of_running_app() {
    let mut app = app("whole");
    let name = app.name.clone();
    assert_eq!(output(&["get", &name]), LISTED);
    assert_eq!(output(&["get", &app.process()]), LISTED);
    assert!(output(&["get"]).contains(&name));
    let changed = output(&["set", &name, "pid.kp=2.5", "window=16", "enabled=false"]);
    assert_eq!(changed, "pid.kp: 1.2 -> 2.5\nwindow: 8 -> 16\nenabled: true -> false\n");
    assert_eq!(app.reads(), "2.5 0.05 16 false", "all together");
    assert_eq!(output(&["set", &name, "window=16"]), "nothing changed: these are the current values\n");
    assert_eq!(output(&["get", &name, "pid.kp", "enabled"]), "2.5\nfalse\n");

    let scratch = Scratch::new("parameters");
    let file = scratch.file("gains.toml");
    let file = file.to_str().unwrap();
    let toml = output(&["get", &name, "--toml"]);
    let expected = "pid.kp = 2.5  # 0.0 to 10.0 A/rad\npid.ki = 0.05  # 0.0 to 1.0 A/(rad s)\nwindow = 16  # 1 to 64\nenabled = false\n";
    assert_eq!(toml.split_once('\n').unwrap().1, expected);
    fs::write(file, toml.replace("2.5", "3.5")).unwrap();
    assert_eq!(output(&["set", &name, "--file", file]), "pid.kp: 2.5 -> 3.5\n");
    assert_eq!(app.reads(), "3.5 0.05 16 false");

    let json: Value = serde_json::from_str(&output(&["get", &name, "--json"])).unwrap();
    assert_eq!((&json["schema"], &json["app"]), (&"punctual-parameters/1".into(), &name.into()));
    let kp = serde_json::json!({
        "name": "pid.kp", "type": "f64", "unit": "A/rad", "min": 0.0, "max": 10.0, "default": 1.2, "value": 3.5
    });
    assert_eq!(json["parameters"][0], kp);
}

#[test]
fn rejects_whole_request_with_one_error() {
    let mut app = app("refusing");
    let name = app.name.clone();
    let nothing = format!("error: {name} (process {}): nothing was changed\n", app.process());
    for (wrong, why) in [
        ("pid.kp=10.5", "pid.kp: 10.5 A/rad is out of range; it takes 0.0 to 10.0 A/rad"),
        ("pid.kp=NaN", "pid.kp: \"NaN\" is not a number; it takes 0.0 to 10.0 A/rad"),
        ("pid.kp=-inf", "pid.kp: \"-inf\" is not a finite number; it takes 0.0 to 10.0 A/rad"),
        ("window=1.5", "window: \"1.5\" is not a whole number; it takes 1 to 64"),
        ("enabled=1", "enabled: \"1\" is neither true nor false"),
        ("kp=1", "there is no parameter kp; there are pid.kp, pid.ki, window, enabled"),
        ("pid.ki=0.5", "pid.ki is given more than once"),
    ] {
        let error = refusal(&["set", &name, "pid.ki=0.25", wrong]);
        assert_eq!(error, format!("error: {why}\n{nothing}"));
    }
    let none = refusal(&["set", &name]);
    assert!(
        none.starts_with("error: nothing is given; there are pid.kp, pid.ki, window, enabled\n"),
        "{none}"
    );
    let unknown = refusal(&["get", &name, "pid.kd"]);
    assert_eq!(unknown, "error: there is no parameter pid.kd; there are pid.kp, pid.ki, window, enabled\n");
    let no_assignment = refusal(&["set", &name, "pid.kp"]);
    assert!(no_assignment.contains("it is not NAME=VALUE, such as pid.kp=1.2"), "{no_assignment}");
    let no_file = refusal(&["set", &name, "--file", "/no/such.toml"]);
    assert!(no_file.starts_with("error: /no/such.toml: No such file"), "{no_file}");
    assert_eq!(output(&["get", &name]), LISTED);
    output(&["set", &name, "window=9"]);
    assert_eq!(app.reads(), "1.2 0.05 9 true", "the job saw nothing of all that");
}

#[test]
fn distinguishes_apps_of_one_name_and_ignores_ended_ones() {
    // Other tests may run apps as well; with this one, some app always runs.
    let other = app("other");
    let first = app("twice");
    let mut second = app("twice");
    let name = first.name.clone();
    let error = refusal(&["set", &name, "window=9"]);
    let (one, two) = (first.process(), second.process());
    assert!(
        error.contains("specify a process number") && error.contains(&one) && error.contains(&two),
        "{error}"
    );
    output(&["set", &two, "window=9"]);
    assert_eq!(second.reads(), "1.2 0.05 9 true");
    drop(first);
    assert_eq!(output(&["get", &name, "window"]), "9\n", "nothing is left of the one that was killed");
    drop(second);
    let error = refusal(&["get", &name]);
    let unknown = format!("error: no running app, program or process {name} with parameters; there are ");
    assert!(error.starts_with(&unknown) && error.contains(&other.name), "{error}");
}

#[test]
fn another_user_may_not() {
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "another user's command");
    }
    let mut app = app("foreign");
    // Where another user can execute it.
    let scratch = Scratch::new("foreign");
    let copy = scratch.file("punctual");
    fs::copy(program(), &copy).unwrap();
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(arguments).uid(65534).gid(65534).current_dir("/").output_within(TEST_LIMIT)
    };
    let Ok(tried) = as_nobody(&["set", &app.name, "window=9"]) else {
        return skip(Need::System("a target directory that other users may enter"), copy.display());
    };
    let error = refused(&tried);
    let why = format!("{} belongs to user 0, and only that user can set its parameters", app.name);
    assert!(error.contains(&why), "{error}");
    assert_eq!(output(&["get", &app.name]), LISTED);
    output(&["set", &app.name, "window=7"]);
    assert_eq!(app.reads(), "1.2 0.05 7 true");
}
